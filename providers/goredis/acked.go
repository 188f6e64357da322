package goredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// maxRedirects is how many redirections are followed for a script with a WAIT.
const maxRedirects = 5

// node is one server: its pipelines go over one connection.
type node interface{ Pipeline() redis.Pipeliner }

// sendPair sends a script and the WAIT behind it in one pipeline. Of a cluster client or a Ring it
// takes the node of the first key by itself: in a pipeline of theirs a WAIT, which has no key, may
// go elsewhere.
//
// A client of a type of your own must have the method of one server (Conn), a cluster
// (MasterForKey) or a Ring (GetShardClientForKey), as a type that embeds the client has; else the
// error matches errors.ErrUnsupported. With Conn, its ReadTimeout must be more than the timeout of
// the WAIT; elsewhere it is prolonged.
func (d *goredisDriver) sendPair(ctx context.Context, of *adapter.Command) {
	p := d.pair(ctx, of)
	of.Answer(p.reply, d.unanswered(p.err))
	of.AnswerWait(p.acked, p.waitErr)
}

// pair has the answers to a script and to the WAIT behind it.
type pair struct {
	reply, acked any
	err, waitErr error
}

// masters is implemented by *redis.ClusterClient.
type masters interface {
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	ForEachMaster(ctx context.Context, visit func(context.Context, *redis.Client) error) error
}

// pair sends a script and a WAIT to the node of the script's key. In a cluster it follows MOVED and
// ASK, since they prove that the script did not run, and ignores the answer to that WAIT.
func (d *goredisDriver) pair(ctx context.Context, of *adapter.Command) pair {
	switch c := d.client.(type) {
	case masters:
		n, err := c.MasterForKey(ctx, of.Key())
		if err != nil {
			return pair{err: classify(ctx, err)}
		}
		asking := false
		for redirects := 0; ; redirects++ {
			p := exchange(ctx, n, asking, of)
			to := redirect(p.err)
			if to == "" || redirects == maxRedirects {
				return p
			}
			asking = driver.CodeOf(p.err) == "ASK"
			if n = named(ctx, c, to); n == nil && !asking { // the cluster has several names for it
				n, _ = c.MasterForKey(ctx, of.Key())
			}
			if n == nil {
				return p
			}
		}
	case interface {
		GetShardClientForKey(key string) (*redis.Client, error)
	}:
		n, err := c.GetShardClientForKey(of.Key())
		if err != nil {
			return pair{err: driver.NotSent(err)}
		}
		return exchange(ctx, n, false, of)
	case interface {
		node
		Conn() *redis.Conn
	}:
		return exchange(ctx, c, false, of)
	}
	return pair{err: driver.NotSent(fmt.Errorf(
		"goredis: WAIT over a %T, of which it is not known where it sends: %w", d.client, errors.ErrUnsupported))}
}

// redirect is the address in a MOVED or ASK, "" for any other err.
func redirect(err error) string {
	if reply, ok := errors.AsType[*driver.ServerError](err); ok && (reply.Code() == "MOVED" || reply.Code() == "ASK") {
		return reply.Text[strings.LastIndexByte(reply.Text, ' ')+1:] // MOVED 3999 127.0.0.1:6381
	}
	return ""
}

// named finds the master at addr; it asks the cluster anew for its masters. nil: there is none.
func named(ctx context.Context, c masters, addr string) (found *redis.Client) {
	visited := make(chan *redis.Client, 1)
	_ = c.ForEachMaster(ctx, func(_ context.Context, n *redis.Client) error { // unreachable ones are left out
		if n.Options().Addr == addr {
			select {
			case visited <- n:
			default:
			}
		}
		return nil
	})
	select {
	case found = <-visited:
	default:
	}
	return found
}

// exchange sends a script and a WAIT in one pipeline to one server.
func exchange(ctx context.Context, n node, asking bool, of *adapter.Command) (p pair) {
	if c, ok := n.(*redis.Client); ok {
		// Its ReadTimeout would make a long WAIT a lost reply.
		ms, _ := strconv.Atoi(of.Wait[1])
		timeout := time.Duration(ms) * time.Millisecond
		if read := c.Options().ReadTimeout; read > 0 && read < 2*timeout {
			n = c.WithTimeout(read + timeout)
		}
	}
	pipe := n.Pipeline()
	if asking {
		_ = pipe.Process(ctx, &command{Cmd: *redis.NewCmd(ctx, "ASKING")}) // refused, the script is too
	}
	script := newCommand(ctx, of)
	wait := &command{Cmd: *redis.NewCmd(ctx, "WAIT", &tracked{word: of.Wait[0], of: of}, of.Wait[1])}
	_ = pipe.Process(ctx, script) // only queues
	_ = pipe.Process(ctx, wait)
	_, err := pipe.Exec(ctx)
	p.reply, p.err = script.reply(ctx, own(script, wait, err))
	p.acked, p.waitErr = wait.reply(ctx, own(wait, script, err))
	return p
}

// own returns the error of c, of a pipeline of two commands. err is the pipeline's: of the first
// failed command, or of both if neither has one.
func own(c, other *command, err error) error {
	if c.Err() == nil && other.Err() == nil {
		return err
	}
	return c.Err()
}
