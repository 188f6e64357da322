package rueidis

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// SetNX implements driver.Driver.
func (a *adapter) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	res, err := a.send(ctx, []string{key}, []string{value, "NX", "PX", strconv.FormatInt(ttl.Milliseconds(), 10)}, "SET")
	if err != nil {
		return false, err
	}
	switch text, err := res.ToString(); {
	case err == nil && text == "OK":
		return true, nil
	case rueidis.IsRedisNil(err):
		return false, nil
	}
	return false, fmt.Errorf("rueidis: SET NX was answered with %s: want OK or nil", res.String())
}

// Eval implements driver.Driver.
func (a *adapter) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	return driver.EvalOnce(s, func(command, body string) (driver.Reply, error) {
		res, err := a.send(ctx, keys, args, command, body, strconv.Itoa(len(keys)))
		if err != nil {
			return driver.Reply{}, err
		}
		return reply(res)
	})
}

// EvalMany implements driver.Batcher: one round trip by digest, and a second one by source for those scripts that the server
// did not know. In a cluster each node gets its part.
func (a *adapter) EvalMany(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls))
	all := make([]int, len(calls))
	for i := range all {
		all[i] = i
	}
	unknown := a.sendMany(ctx, calls, results, all, "EVALSHA", (*driver.Script).Digest)
	a.sendMany(ctx, calls, results, unknown, "EVAL", (*driver.Script).Source)
	return results
}

// sendMany sends the calls that which indexes. It returns the indexes of those that got NOSCRIPT.
func (a *adapter) sendMany(ctx context.Context, calls []driver.Call, results []driver.Result, which []int,
	command string, body func(*driver.Script) string,
) (unknown []int) {
	notReady, w, closing := a.ready(ctx), a.health.batchWay(len(which)), a.health.closing.Load()
	cmds := make(rueidis.Commands, 0, len(which))
	sent := make([]int, 0, len(which))
	for _, i := range which {
		c := calls[i]
		cmd, err := a.build(w, c.Keys, c.Args, command, body(c.Script), strconv.Itoa(len(c.Keys)))
		if err = cmp.Or(notReady, err); err != nil {
			results[i].Err = err
			continue
		}
		cmds, sent = append(cmds, cmd), append(sent, i)
	}
	if len(cmds) == 0 {
		return nil
	}
	for j, res := range a.doMulti(ctx, w, cmds) {
		r := &results[sent[j]]
		if r.Err = a.outcome(ctx, res, closing); r.Err == nil {
			r.Reply, r.Err = reply(res)
		} else if driver.CodeOf(r.Err) == "NOSCRIPT" {
			unknown = append(unknown, sent[j])
		}
	}
	return unknown
}

// send sends one command: words, then keys, then args. A nil reply is no error.
func (a *adapter) send(ctx context.Context, keys, args []string, words ...string) (res rueidis.RedisResult, err error) {
	if err = a.ready(ctx); err != nil {
		return res, err
	}
	w, closing := a.health.way(), a.health.closing.Load()
	cmd, err := a.build(w, keys, args, words...)
	if err != nil {
		return res, err
	}
	res = a.do(ctx, w, cmd)
	return res, a.outcome(ctx, res, closing)
}

// ready is nil if a command may be sent.
func (a *adapter) ready(ctx context.Context) error {
	if err := a.Guard(); err != nil {
		return err
	}
	return driver.NotSent(ctx.Err())
}

// build makes a command that goes its way. A cluster client's builder panics on keys of several slots.
func (a *adapter) build(w way, keys, args []string, words ...string) (cmd rueidis.Completed, err error) {
	defer func() {
		if p := recover(); p != nil {
			got := fmt.Sprintf("%.200q: %v", strings.Join(keys, " "), p)
			err = driver.NotSent(driver.Invalid("keys of a script", got, "keys of one cluster slot"))
		}
	}()
	c := a.client.B().Arbitrary(words...).Keys(keys...).Args(args...)
	if w == aside {
		cmd = c.Blocking()
	} else {
		cmd = c.Build().ToPipe()
	}
	if len(keys) == 0 {
		cmd = cmd.SetSlot("") // without a slot a cluster client may choose a replica, and panics in a batch
	}
	return cmd, nil
}

// reply converts what a script answered.
func reply(res rueidis.RedisResult) (driver.Reply, error) {
	v, err := res.ToAny()
	if err != nil && !rueidis.IsRedisNil(err) {
		return driver.Reply{}, err
	}
	return driver.NewReply(v)
}
