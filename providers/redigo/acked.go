package redigo

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// EvalAcked implements [driver.Acknowledger]: both commands are sent together, on one connection.
func (d *redigoDriver) EvalAcked(
	ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration,
) (driver.Reply, int, error) {
	body := scriptArgs(keys, args)
	return d.scripts.EvalAcked(ctx, s, replicas, timeout,
		func(command, script string, wait [2]string) (driver.Reply, int, error) {
			body[0] = script
			p, err := follow(ctx, d, firstKey(keys),
				func(conn redis.Conn) (pair, error) { return sendPair(ctx, conn, command, body, wait) })
			err = adapter.ConvertPending(err, func(p pair, err error) (driver.Reply, error) {
				r, _, err := adapter.AckedReply(p.reply, err, p.acked, p.waitErr)
				return r, err
			})
			return adapter.AckedReply(p.reply, err, p.acked, p.waitErr)
		})
}

// pair has the replies to a script and to the WAIT after it.
type pair struct {
	reply, acked any
	waitErr      error
}

// sendPair reads both replies in any case: one that stays behind would be the next command's.
func sendPair(
	ctx context.Context, conn redis.Conn, command string, body []any, wait [2]string,
) (p pair, err error) {
	if err := conn.Send(command, body...); err != nil {
		return p, err
	}
	if err := conn.Send("WAIT", wait[0], wait[1]); err != nil {
		return p, err
	}
	if err := conn.Flush(); err != nil {
		return p, err
	}
	p.reply, err = receive(ctx, conn)
	if err != nil && conn.Err() != nil {
		return p, err
	}
	p.acked, p.waitErr = receive(ctx, conn)
	p.waitErr = explain(ctx, p.waitErr)
	return p, err
}
