package rueidis

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// maxRedirects is how many redirections are followed for a script with a WAIT.
const maxRedirects = 5

// EvalAcked implements driver.Acknowledger. Both commands go over a connection that they have for
// themselves: on a shared one WAIT would keep everybody else waiting.
func (d *rueidisDriver) EvalAcked(
	ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration,
) (driver.Reply, int, error) {
	keys, args = slices.Clone(keys), slices.Clone(args) // after an early return nothing may look at the caller's
	return d.scripts.EvalAcked(ctx, s, replicas, timeout,
		func(command, body string, wait [2]string) (driver.Reply, int, error) {
			if err := d.ready(ctx); err != nil {
				return driver.Reply{}, 0, err
			}
			p := pair{keys: keys, args: args, words: []string{command, body, strconv.Itoa(len(keys))}, wait: wait}
			cmds, err := d.commands(p, false)
			if err != nil {
				return driver.Reply{}, 0, err
			}
			n, closing := d.nodeOf(cmds[0]), d.closing.Load()
			var acked int
			reply, err := detach(ctx, n, []*adapter.Gate{n.acked}, func(*call) (reply driver.Reply, err error) {
				sending, cancel := context.WithTimeout(ctx, pooledTimeout+timeout)
				defer cancel()
				reply, acked, err = d.acknowledgement(ctx, d.exchange(sending, p, cmds), closing)
				return reply, err
			})
			if err != nil {
				return reply, 0, err
			}
			return reply, acked, nil
		})
}

// acknowledgement converts what a pair was answered.
func (d *rueidisDriver) acknowledgement(
	ctx context.Context, r answers, closing bool,
) (driver.Reply, int, error) {
	if err := d.outcome(ctx, r.script, closing); err != nil {
		return driver.Reply{}, 0, err
	}
	reply, err := r.script.ToAny()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	acked, waitErr := r.wait.ToAny()
	if waitErr != nil {
		waitErr = d.outcome(ctx, r.wait, closing)
	}
	return adapter.AckedReply(reply, err, acked, waitErr)
}

// pair is a script and the WAIT after it.
type pair struct {
	words, keys, args []string
	wait              [2]string
}

// answers are a pair's.
type answers struct{ script, wait rueidis.RedisResult }

// commands are those of p, made anew: a client takes them back once it has sent them.
func (d *rueidisDriver) commands(p pair, asking bool) (cmds rueidis.Commands, err error) {
	script, err := d.build(true, p.keys, p.args, p.words...)
	if err != nil {
		return nil, err
	}
	key := ""
	if len(p.keys) > 0 {
		key = p.keys[0]
	}
	// the script's: to a cluster client it has none
	wait := d.client.B().Arbitrary("WAIT").Args(p.wait[:]...).Blocking().SetSlot(key)
	if asking {
		return rueidis.Commands{d.client.B().Arbitrary("ASKING").Blocking().SetSlot(key), script, wait}, nil
	}
	return rueidis.Commands{script, wait}, nil
}

// exchange sends p to the node of its key, and follows MOVED and ASK of a cluster, which prove that
// the script did not run. A cluster client's own DoMulti would follow them with the script alone,
// and take the WAIT's answer from the wrong node; a dedicated one follows nothing.
func (d *rueidisDriver) exchange(ctx context.Context, p pair, cmds rueidis.Commands) answers {
	if !d.node.cluster {
		return last(d.client.DoMulti(ctx, cmds...))
	}
	var r answers
	_ = d.client.Dedicated(func(conn rueidis.DedicatedClient) error { // it returns what we do
		if r = last(conn.DoMulti(ctx, cmds...)); r.script.NonRedisError() != nil || r.wait.NonRedisError() != nil {
			conn.Close() // a late answer would be the next command's
		}
		return nil
	})
	for range maxRedirects {
		refusal, refused := rueidis.IsRedisErr(r.script.Error())
		if !refused {
			return r
		}
		addr, moved := refusal.IsMoved()
		asking := false
		if !moved {
			if addr, asking = refusal.IsAsk(); !asking {
				return r
			}
		}
		node := d.clientOf(ctx, addr, p)
		if node == nil {
			return r
		}
		cmds, _ = d.commands(p, asking) // they were made before
		r = last(node.DoMulti(ctx, cmds...))
	}
	return r
}

// clientOf is a client of the one node at addr; nil where the cluster client does not come to know
// it.
func (d *rueidisDriver) clientOf(ctx context.Context, addr string, p pair) rueidis.Client {
	if n := d.client.Nodes()[addr]; n != nil {
		return n
	}
	// A command with the same key is redirected too, and so makes the client look.
	if cmd, err := d.build(true, p.keys[:min(len(p.keys), 1)], nil, "PTTL"); err == nil {
		_ = d.client.Do(ctx, cmd).Error()
	}
	return d.client.Nodes()[addr]
}

// last are the answers to the last two commands.
func last(results []rueidis.RedisResult) answers {
	return answers{results[len(results)-2], results[len(results)-1]}
}
