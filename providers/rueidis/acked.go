package rueidis

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// maxRedirects is how many redirections are followed for a script with a WAIT.
const maxRedirects = 5

// sendPair sends a script and the WAIT behind it over a connection of their own: on a shared one
// WAIT would keep everybody else waiting.
func (n *node) sendPair(ctx context.Context, c *adapter.Command) {
	cmds, err := n.d.pair(c, false)
	if err != nil || !c.Begin() {
		c.Answer(nil, err)
		return
	}
	closing := n.d.closing.Load()
	sending, cancel := context.WithTimeout(ctx, pooledTimeout+milliseconds(c.Wait[1]))
	defer cancel()
	r := n.d.exchange(sending, c, cmds)
	n.d.answer(ctx, c, r.script, closing)
	if c.Err() == nil {
		acked, err := r.wait.ToAny()
		if err != nil {
			err = n.d.outcome(ctx, r.wait, closing)
		}
		c.AnswerWait(acked, err)
	}
}

func milliseconds(text string) time.Duration {
	ms, _ := strconv.Atoi(text)
	return time.Duration(ms) * time.Millisecond
}

// answers are those to a script and the WAIT behind it.
type answers struct{ script, wait rueidis.RedisResult }

// pair are c and its WAIT, made anew: a client takes them back once it has sent them.
func (d *rueidisDriver) pair(c *adapter.Command, asking bool) (rueidis.Commands, error) {
	script, err := d.build(true, c)
	if err != nil {
		return nil, err
	}
	// with the script's slot: to a cluster client it has none
	wait := d.client.B().Arbitrary("WAIT").Args(c.Wait[:]...).Blocking().SetSlot(c.Key())
	if asking {
		return rueidis.Commands{d.client.B().Arbitrary("ASKING").Blocking().SetSlot(c.Key()), script, wait}, nil
	}
	return rueidis.Commands{script, wait}, nil
}

// exchange sends c and its WAIT to the node of its key, and follows MOVED and ASK of a cluster:
// they prove that the script did not run. A cluster client's own DoMulti would follow them with the
// script alone, and take the WAIT's answer from the wrong node; a dedicated one follows nothing.
func (d *rueidisDriver) exchange(ctx context.Context, c *adapter.Command, cmds rueidis.Commands) answers {
	if !d.cluster {
		return last(d.client.DoMulti(ctx, cmds...))
	}
	var r answers
	_ = d.client.Dedicated(func(conn rueidis.DedicatedClient) error { // it returns our nil
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
		node := d.clientOf(ctx, addr, c)
		if node == nil {
			return r
		}
		cmds, _ = d.pair(c, asking) // they were made before
		r = last(node.DoMulti(ctx, cmds...))
	}
	return r
}

// clientOf returns a client of the node at addr; nil if the cluster client does not come to know
// it.
func (d *rueidisDriver) clientOf(ctx context.Context, addr string, c *adapter.Command) rueidis.Client {
	if n := d.client.Nodes()[addr]; n != nil {
		return n
	}
	// A command with the same key is redirected too, and so makes the client look.
	_ = d.client.Do(ctx, d.client.B().Arbitrary("PTTL").Keys(c.Key()).Blocking()).Error()
	return d.client.Nodes()[addr]
}

// last are the answers to the last two commands.
func last(results []rueidis.RedisResult) answers {
	return answers{results[len(results)-2], results[len(results)-1]}
}
