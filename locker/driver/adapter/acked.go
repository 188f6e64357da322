package adapter

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// waitArgs returns the arguments of WAIT. A timeout of 0 would mean forever; it becomes 1 ms.
func waitArgs(replicas int, timeout time.Duration) [2]string {
	return [2]string{strconv.Itoa(replicas), strconv.FormatInt(max(timeout.Milliseconds(), 1), 10)}
}

// ackedReply returns the results of EvalAcked, given the client's decoded ones: the reply and error
// of the script, and of the WAIT after it. An error of the WAIT becomes a [*driver.WaitError].
func ackedReply(reply any, err error, acked any, waitErr error) (driver.Reply, int, error) {
	if err != nil {
		return driver.Reply{}, 0, err
	}
	r, err := driver.NewReply(reply)
	if err != nil {
		return driver.Reply{}, 0, err
	}
	if waitErr != nil {
		return driver.Reply{}, 0, &driver.WaitError{Err: waitErr}
	}
	n, ok := acked.(int64)
	if !ok {
		return driver.Reply{}, 0, &driver.WaitError{Err: fmt.Errorf("it was answered with %.100q: want a number",
			fmt.Sprint(acked))}
	}
	return r, int(n), nil
}

// evalAcked is eval for a script followed by WAIT; wait has the arguments of WAIT.
// WAIT takes time even after NOSCRIPT, since the server may also wait for the writes of other
// clients. The WAIT of the second try gets the rest of timeout.
func (c *scriptCache) evalAcked(ctx context.Context, s *driver.Script, replicas int, timeout time.Duration,
	send func(command, body string, wait [2]string) (driver.Reply, int, error),
) (r driver.Reply, acked int, err error) {
	left := timeout
	r, err = c.eval(ctx, s, func(command, body string) (r driver.Reply, err error) {
		sent := time.Now()
		r, acked, err = send(command, body, waitArgs(replicas, left))
		left -= time.Since(sent)
		return r, err
	})
	return r, acked, err
}
