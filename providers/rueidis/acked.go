package rueidis

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// maxRedirects is how many redirections a script with a WAIT behind it follows.
const maxRedirects = 5

// EvalAcked implements driver.Acknowledger. Both commands go over a connection that they have for
// themselves: on a shared one WAIT would keep everybody else waiting.
func (a *adapter) EvalAcked(
	ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration,
) (driver.Reply, int, error) {
	keys, args = slices.Clone(keys), slices.Clone(args) // after an early return nothing may look at the caller's
	return a.scripts.EvalAcked(ctx, s, replicas, timeout, func(command, body string, wait [2]string) (driver.Reply, int, error) {
		if err := a.ready(ctx); err != nil {
			return driver.Reply{}, 0, err
		}
		p := pair{keys: keys, args: args, words: []string{command, body, strconv.Itoa(len(keys))}, wait: wait}
		cmds, err := a.commands(p, false)
		if err != nil {
			return driver.Reply{}, 0, err
		}
		n, closing := a.nodeOf(cmds[0]), a.closing.Load()
		var acked int
		reply, err := detach(ctx, n, []*driver.Gate{n.acked}, func(*call) (reply driver.Reply, err error) {
			sending, cancel := context.WithTimeout(ctx, pooledTimeout+timeout)
			defer cancel()
			reply, acked, err = a.acknowledgement(ctx, a.exchange(sending, p, cmds), closing)
			return reply, err
		})
		if err != nil {
			return reply, 0, err
		}
		return reply, acked, nil
	})
}

// acknowledgement converts what a pair was answered.
func (a *adapter) acknowledgement(
	ctx context.Context, r answers, closing bool,
) (driver.Reply, int, error) {
	if err := a.outcome(ctx, r.script, closing); err != nil {
		return driver.Reply{}, 0, err
	}
	reply, err := r.script.ToAny()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	acked, waitErr := r.wait.ToAny()
	if waitErr != nil {
		waitErr = a.outcome(ctx, r.wait, closing)
	}
	return driver.NewAcked(reply, err, acked, waitErr)
}

// pair is a script and the WAIT behind it.
type pair struct {
	words, keys, args []string
	wait              [2]string
}

// answers are a pair's.
type answers struct{ script, wait rueidis.RedisResult }

// commands are those of p, made anew: a client takes them back once it has sent them.
func (a *adapter) commands(p pair, asking bool) (cmds rueidis.Commands, err error) {
	script, err := a.build(true, p.keys, p.args, p.words...)
	if err != nil {
		return nil, err
	}
	key := ""
	if len(p.keys) > 0 {
		key = p.keys[0]
	}
	wait := a.client.B().Arbitrary("WAIT").Args(p.wait[:]...).Blocking().SetSlot(key) // the script's: to a cluster client it has none
	if asking {
		return rueidis.Commands{a.client.B().Arbitrary("ASKING").Blocking().SetSlot(key), script, wait}, nil
	}
	return rueidis.Commands{script, wait}, nil
}

// exchange sends p to the node of its key, and follows MOVED and ASK of a cluster, which prove that
// the script did not run. A cluster client's own DoMulti would follow them with the script alone,
// and take the WAIT's answer from the wrong node; a dedicated one follows nothing.
func (a *adapter) exchange(ctx context.Context, p pair, cmds rueidis.Commands) answers {
	if !a.node.cluster {
		return last(a.client.DoMulti(ctx, cmds...))
	}
	var r answers
	_ = a.client.Dedicated(func(conn rueidis.DedicatedClient) error { // it returns what we do
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
		node := a.clientOf(ctx, addr, p)
		if node == nil {
			return r
		}
		cmds, _ = a.commands(p, asking) // they were made before
		r = last(node.DoMulti(ctx, cmds...))
	}
	return r
}

// clientOf is a client of the one node at addr; nil where the cluster client does not come to know
// it.
func (a *adapter) clientOf(ctx context.Context, addr string, p pair) rueidis.Client {
	if n := a.client.Nodes()[addr]; n != nil {
		return n
	}
	// A command with the same key is redirected too, and so makes the client look.
	if cmd, err := a.build(true, p.keys[:min(len(p.keys), 1)], nil, "PTTL"); err == nil {
		_ = a.client.Do(ctx, cmd).Error()
	}
	return a.client.Nodes()[addr]
}

// last are the answers to the last two commands.
func last(results []rueidis.RedisResult) answers {
	return answers{results[len(results)-2], results[len(results)-1]}
}
