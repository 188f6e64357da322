package redigo

import (
	"context"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// EvalMany implements [driver.Batcher]: all scripts in one round trip on one connection, those that
// the server did not know in a second one. In a cluster each goes by itself, a few at once.
func (d *redigoDriver) EvalMany(ctx context.Context, calls []driver.Call) []driver.Result {
	if d.cluster != nil {
		return d.evalEach(ctx, calls)
	}
	b := &batch{scripts: make([]*driver.Script, len(calls)), args: make([][]any, len(calls)),
		all: make([]int, len(calls))}
	for i, c := range calls {
		b.scripts[i], b.args[i], b.all[i] = c.Script, scriptArgs(c.Keys, c.Args), i
	}
	results, err := call(ctx, d, "", func(conn redis.Conn) ([]driver.Result, error) { return b.send(ctx, conn), nil })
	if err != nil {
		results = make([]driver.Result, len(calls))
		for i := range results {
			results[i].Err = err
		}
	}
	return results
}

type batch struct {
	scripts []*driver.Script
	args    [][]any
	all     []int // every index
}

func (b *batch) send(ctx context.Context, conn redis.Conn) []driver.Result {
	results := make([]driver.Result, len(b.all))
	for i, s := range b.scripts {
		b.args[i][0] = s.Digest()
	}
	b.round(ctx, conn, "EVALSHA", b.all, results)
	var unknown []int
	for i, r := range results {
		if driver.CodeOf(r.Err) == "NOSCRIPT" {
			b.args[i][0] = b.scripts[i].Source()
			unknown = append(unknown, i)
		}
	}
	if unknown != nil && conn.Err() == nil && ctx.Err() == nil {
		b.round(ctx, conn, "EVAL", unknown, results)
	}
	return results
}

// round sends the calls of which and reads their replies meanwhile: a server whose replies nobody
// reads stops reading. Once the connection breaks, the outcome of every call without a reply is
// unknown.
func (b *batch) round(
	ctx context.Context, conn redis.Conn, command string, which []int, results []driver.Result,
) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, i := range which {
			if conn.Send(command, b.args[i]...) != nil {
				return // the connection is closed then, so that receiving fails as well
			}
		}
		_ = conn.Flush() // the same
	})
	defer wg.Wait()
	var broken error
	for _, i := range which {
		if broken != nil {
			results[i].Err = broken
			continue
		}
		v, err := receive(ctx, conn)
		if err = explain(ctx, err); err == nil {
			results[i].Reply, err = driver.NewReply(v)
		} else if driver.CodeOf(err) == "" {
			broken = err
		}
		results[i].Err = err
	}
}

func receive(ctx context.Context, conn redis.Conn) (any, error) {
	if d, ok := readLimit(ctx); ok {
		return redis.ReceiveWithTimeout(conn, d)
	}
	return conn.Receive()
}

const (
	clusterCalls = 8                     // how many calls of a batch a cluster gets at once
	clusterStall = 10 * time.Millisecond // after which a call that is not answered counts no longer
)

// evalEach keeps a few calls under way. Those that wait for a frozen node do not hold up the
// others.
func (d *redigoDriver) evalEach(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls))
	running := make(chan struct{}, clusterCalls)
	var wg sync.WaitGroup
	for i, c := range calls {
		running <- struct{}{}
		leave := sync.OnceFunc(func() { <-running })
		stalled := time.AfterFunc(clusterStall, leave)
		wg.Go(func() {
			results[i].Reply, results[i].Err = d.Eval(ctx, c.Script, c.Keys, c.Args)
			stalled.Stop()
			leave()
		})
	}
	wg.Wait()
	return results
}
