package rueidis

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// EvalMany implements driver.Batcher: one round trip by digest, and a second one by source for
// those scripts that the server did not know. In a cluster each node gets its part.
func (d *rueidisDriver) EvalMany(ctx context.Context, calls []driver.Call) []driver.Result {
	b := batch{d: d, ctx: ctx, calls: calls, results: make([]driver.Result, len(calls))}
	all := make([]int, len(calls))
	for i := range all {
		all[i] = i
	}
	unknown := b.send(all, "EVALSHA", (*driver.Script).Digest)
	b.send(unknown, "EVAL", (*driver.Script).Source)
	return b.results
}

// batch is one EvalMany.
type batch struct {
	d       *rueidisDriver
	ctx     context.Context //nolint:containedctx // of the one call
	calls   []driver.Call
	results []driver.Result
}

// part is what one node gets of a batch.
type part struct {
	node  *node
	which []int // indexes of calls
	cmds  rueidis.Commands
}

// send sends the calls that which indexes. It returns the indexes of those that got NOSCRIPT.
func (b *batch) send(
	which []int, command string, body func(*driver.Script) string,
) (unknown []int) {
	build := func(i int, blocking bool) (rueidis.Completed, error) {
		c := b.calls[i]
		return b.d.build(blocking, c.Keys, c.Args, command, body(c.Script), strconv.Itoa(len(c.Keys)))
	}
	notReady := b.d.ready(b.ctx)
	var parts []*part
	for _, i := range which {
		cmd, err := build(i, false)
		if err = cmp.Or(notReady, err); err != nil {
			b.results[i].Err = err
			continue
		}
		n := b.d.nodeOf(cmd)
		at := slices.IndexFunc(parts, func(p *part) bool { return p.node == n })
		if at < 0 {
			at, parts = len(parts), append(parts, &part{node: n})
		}
		p := parts[at]
		p.which, p.cmds = append(p.which, i), append(p.cmds, cmd)
	}
	var wg sync.WaitGroup
	for i, p := range parts {
		send := func() {
			for j, r := range b.d.sendPart(b.ctx, p, build) {
				b.results[p.which[j]] = r
			}
		}
		if i == len(parts)-1 {
			send()
		} else {
			wg.Go(send)
		}
	}
	wg.Wait()
	for _, p := range parts {
		for _, i := range p.which {
			if driver.CodeOf(b.results[i].Err) == "NOSCRIPT" {
				unknown = append(unknown, i)
			}
		}
	}
	return unknown
}

// sendPart sends what one node gets. rebuild makes the command of a call anew.
func (d *rueidisDriver) sendPart(
	ctx context.Context, p *part, rebuild func(i int, blocking bool) (rueidis.Completed, error),
) []driver.Result {
	n, closing := p.node, d.closing.Load()
	read := func(res rueidis.RedisResult) (driver.Reply, error) { return convert(ctx, d, res, closing, reply) }
	readAll := func(all []rueidis.RedisResult) []driver.Result {
		results := make([]driver.Result, len(all))
		for i, res := range all {
			results[i].Reply, results[i].Err = read(res)
		}
		return results
	}
	now := time.Now()
	r := n.route(ctx, now)
	if r == direct {
		within := n.pipelined(ctx, now, n.direct.Add(1))
		sent := n.now()
		all := d.client.DoMulti(within, p.cmds...)
		n.answered(within)
		d.observeDirect(ctx, n, sent, all[len(all)-1])
		return readAll(all)
	}
	var own rueidis.Commands // for connections of their own
	if r != detached {
		for _, i := range p.which {
			cmd, _ := rebuild(i, true) // it was built before
			own = append(own, cmd)
		}
		if n.cluster {
			return d.eachPooled(ctx, n, own, read)
		}
	}
	results, err := detach(ctx, n, n.gates(r), func(c *call) ([]driver.Result, error) {
		if c.gate == n.shared {
			all := d.client.DoMulti(n.lasting(ctx, c), p.cmds...)
			n.observe(c.sent, all[len(all)-1].NonRedisError() == nil)
			return readAll(all), nil
		}
		return readAll(d.client.DoMulti(n.patient(ctx, c), own...)), nil
	})
	if err != nil {
		return slices.Repeat([]driver.Result{{Err: err}}, len(p.cmds))
	}
	return results
}

// eachPooled sends commands one by one, several at once. A cluster client panics where it is to
// follow ASK with a batch on a connection of the pool (v1.0.79: mux.DoMulti marks its ASKING as
// blocking, and askingMulti does not know it again).
func (d *rueidisDriver) eachPooled(
	ctx context.Context, n *node, cmds rueidis.Commands,
	read func(rueidis.RedisResult) (driver.Reply, error),
) []driver.Result {
	results := make([]driver.Result, len(cmds))
	next := make(chan int, len(cmds))
	for i := range cmds {
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	for range min(len(cmds), maxPooled) {
		wg.Go(func() {
			for i := range next {
				results[i].Reply, results[i].Err = detach(ctx, n, n.gates(pooled), func(c *call) (driver.Reply, error) {
					return read(d.client.Do(n.patient(ctx, c), cmds[i]))
				})
			}
		})
	}
	wg.Wait()
	return results
}
