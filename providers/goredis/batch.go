package goredis

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// EvalMany implements driver.Batcher: one pipeline by digest, and a second one by source for those
// scripts that the server did not know. In a cluster the client makes one pipeline per node.
func (d *goredisDriver) EvalMany(ctx context.Context, calls []driver.Call) []driver.Result {
	cmds := make([]*command, len(calls))
	sources := make([]string, len(calls))
	for i, c := range calls {
		words := scriptWords(c.Keys, c.Args)
		words[0], words[1] = "EVALSHA", c.Script.Digest()
		cmds[i], sources[i] = newCommand(ctx, words), c.Script.Source()
		cmds[i].batched = true
	}
	results, err := together(ctx, d, func() ([]driver.Result, error) {
		results := d.pipeline(ctx, cmds)
		var again []*command
		var at []int
		for i, r := range results {
			if driver.CodeOf(r.Err) == "NOSCRIPT" && !cmds[i].delivery.abandoned() {
				words := slices.Clone(cmds[i].Args())
				words[0], words[1] = "EVAL", sources[i]
				again, at = append(again, newCommand(ctx, words)), append(at, i)
			}
		}
		for i, r := range d.pipeline(ctx, again) {
			results[at[i]] = r
		}
		return results, nil
	})
	if err != nil { // a node that is silent until ctx ends says nothing of the others
		results = make([]driver.Result, len(calls))
		for i, cmd := range cmds {
			switch {
			case cmd.told.Load():
				results[i].Reply, results[i].Err = driver.NewReply(cmd.Val())
			case cmd.delivery.abandon():
				results[i].Err = driver.NotSent(err)
			default:
				results[i].Err = err
			}
		}
	}
	return results
}

// pipeline sends cmds together.
func (d *goredisDriver) pipeline(ctx context.Context, cmds []*command) []driver.Result {
	if len(cmds) == 0 {
		return nil
	}
	pipe := d.client.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd) // only queues
	}
	_, err := pipe.Exec(ctx)
	if slices.ContainsFunc(cmds, func(c *command) bool { return c.Err() != nil }) {
		err = nil // it is one of theirs
	}
	results := make([]driver.Result, len(cmds))
	for i, cmd := range cmds {
		if err != nil {
			cmd.SetErr(err)
		}
		var reply any
		if reply, results[i].Err = cmd.reply(ctx, cmd.Err()); results[i].Err == nil {
			results[i].Reply, results[i].Err = driver.NewReply(reply)
		}
		results[i].Err = d.unanswered(results[i].Err)
	}
	return results
}
