package goredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// maxRedirects is how many redirections are followed for a script with a WAIT.
const maxRedirects = 5

// node is where a pipeline goes to, on one connection: one server.
type node interface{ Pipeline() redis.Pipeliner }

// EvalAcked implements driver.Acknowledger: a pipeline of two. Of a cluster client or a Ring it
// takes the node of the first key by itself: in a pipeline of theirs a WAIT, which has no key, may
// go elsewhere.
//
// A client of a type of your own must show that it is one server (Conn), a cluster (MasterForKey)
// or a Ring (GetShardClientForKey), as one does that embeds the client; else the error matches
// errors.ErrUnsupported. Of such a type that is one server, ReadTimeout must be more than timeout;
// elsewhere it is prolonged.
func (d *goredisDriver) EvalAcked(
	ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration,
) (driver.Reply, int, error) {
	words, key := scriptWords(keys, args), firstKey(keys)
	return d.scripts.EvalAcked(ctx, s, replicas, timeout,
		func(command, body string, wait [2]string) (driver.Reply, int, error) {
			words[0], words[1] = command, body
			w := acknowledged{words, []any{"WAIT", wait[0], wait[1]}, timeout, new(delivery)}
			acked := 0 // read only by who gets the answer
			reply, err := call(ctx, d, key, w.delivery, func(context.Context) (r driver.Reply, err error) {
				r, acked, err = d.pair(ctx, key, w)
				return r, d.unanswered(err)
			})
			if err != nil {
				return driver.Reply{}, 0, err
			}
			return reply, acked, nil
		})
}

// acknowledged is a script and the WAIT after it, which takes timeout at most.
type acknowledged struct {
	script, wait []any
	timeout      time.Duration
	delivery     *delivery // of both
}

// masters is what *redis.ClusterClient has.
type masters interface {
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	ForEachMaster(ctx context.Context, visit func(context.Context, *redis.Client) error) error
}

// pair sends a script and a WAIT to the node of key. In a cluster it follows MOVED and ASK, which
// prove that the script did not run; what WAIT said then is of no account.
func (d *goredisDriver) pair(ctx context.Context, key string, w acknowledged) (driver.Reply, int, error) {
	switch c := d.client.(type) {
	case masters:
		n, err := c.MasterForKey(ctx, key)
		if err != nil {
			return driver.Reply{}, 0, classify(ctx, err, false)
		}
		asking := false
		for redirects := 0; ; redirects++ {
			reply, acked, err := exchange(ctx, n, asking, w)
			to := redirect(err)
			if to == "" || redirects == maxRedirects {
				return reply, acked, err
			}
			asking = driver.CodeOf(err) == "ASK"
			if n = named(ctx, c, to); n == nil && !asking { // the cluster has several names for it
				n, _ = c.MasterForKey(ctx, key)
			}
			if n == nil {
				return reply, acked, err
			}
		}
	case interface {
		GetShardClientForKey(key string) (*redis.Client, error)
	}:
		n, err := c.GetShardClientForKey(key)
		if err != nil {
			return driver.Reply{}, 0, driver.NotSent(err)
		}
		return exchange(ctx, n, false, w)
	case interface {
		node
		Conn() *redis.Conn
	}:
		return exchange(ctx, c, false, w)
	}
	return driver.Reply{}, 0, driver.NotSent(fmt.Errorf(
		"goredis: WAIT over a %T, of which it is not known where it sends: %w", d.client, errors.ErrUnsupported))
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
	_ = c.ForEachMaster(ctx, func(_ context.Context, n *redis.Client) error { // what it cannot reach, it does not name
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
func exchange(ctx context.Context, n node, asking bool, w acknowledged) (driver.Reply, int, error) {
	if c, ok := n.(*redis.Client); ok {
		// Its ReadTimeout would make of a WAIT that is long a lost reply.
		if read := c.Options().ReadTimeout; read > 0 && read < 2*w.timeout {
			n = c.WithTimeout(read + w.timeout)
		}
	}
	pipe := n.Pipeline()
	if asking {
		_ = pipe.Process(ctx, newCommand(ctx, []any{"ASKING"})) // refused, the script is too
	}
	first, second := newCommand(ctx, slices.Clone(w.script)), newCommand(ctx, slices.Clone(w.wait))
	first.delivery, second.delivery = w.delivery, w.delivery
	_ = pipe.Process(ctx, first) // only queues
	_ = pipe.Process(ctx, second)
	_, err := pipe.Exec(ctx)
	reply, err1 := first.reply(ctx, own(first, second, err))
	acked, err2 := second.reply(ctx, own(second, first, err))
	return adapter.AckedReply(reply, err1, acked, err2)
}

// own is what became of a command of a pipeline whose other one is given. The pipeline's error is
// that of its first command that failed, or that of all where none has one.
func own(c, other *command, err error) error {
	if c.Err() == nil && other.Err() == nil {
		return err
	}
	return c.Err()
}
