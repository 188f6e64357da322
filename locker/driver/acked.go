package driver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Acknowledger is implemented by drivers that can tell how many replicas have what a script wrote.
type Acknowledger interface {
	// EvalAcked is Eval with WAIT replicas timeout (https://redis.io/docs/latest/commands/wait/) right behind the script, on the
	// same connection and in the same round trip. It executes the script at most once, and returns how many replicas had
	// acknowledged its writes when as many as asked for had, or timeout had passed. timeout is in whole milliseconds, at least
	// one; 0 would be for ever. replicas is at least one.
	//
	// WAIT speaks for the writes of its connection: of what another one wrote, by a send whose reply was lost, acked proves
	// nothing where this script wrote nothing.
	//
	// An error is Eval's, or, where the script was answered and WAIT was not, a *[WaitError]. A client that then tells nothing of
	// the script leaves it open as Eval does.
	EvalAcked(ctx context.Context, s *Script, keys, args []string, replicas int, timeout time.Duration) (reply Reply, acked int, err error)
}

// WaitError is the error of WAIT behind a script that was executed: nobody knows who else has what it wrote.
type WaitError struct{ Err error }

// Error implements error.
func (e *WaitError) Error() string {
	return "the script was executed, but not the WAIT behind it: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }

// refused tells whether the server would refuse every other WAIT too: it does not know it, or not from this user.
func (e *WaitError) refused() bool {
	se, ok := errors.AsType[*ServerError](e.Err)
	return ok && (se.Code() == "NOPERM" || strings.HasPrefix(se.Text, "ERR unknown command"))
}

// WaitRefused tells whether err is that of a WAIT that the server will go on refusing.
func WaitRefused(err error) bool {
	e, ok := errors.AsType[*WaitError](err)
	return ok && e.refused()
}

// WaitArgs are the arguments of WAIT.
func WaitArgs(replicas int, timeout time.Duration) [2]string {
	return [2]string{strconv.Itoa(replicas), strconv.FormatInt(max(timeout.Milliseconds(), 1), 10)}
}

// NewAcked makes of what a client says of a script and of the WAIT behind it what EvalAcked returns.
func NewAcked(reply any, err error, acked any, waitErr error) (Reply, int, error) {
	if err != nil {
		return Reply{}, 0, err
	}
	r, err := NewReply(reply)
	if err != nil {
		return Reply{}, 0, err
	}
	if waitErr != nil {
		return Reply{}, 0, &WaitError{waitErr}
	}
	n, ok := acked.(int64)
	if !ok {
		return Reply{}, 0, &WaitError{fmt.Errorf("it was answered with %.100q: want a number", fmt.Sprint(acked))}
	}
	return r, int(n), nil
}

// EvalAcked is [Scripts.Eval] for a script followed by WAIT; send gets WAIT's arguments as wait.
// WAIT takes time even behind a NOSCRIPT, since it waits for the writes of other clients. The WAIT
// of the second try gets what is left of timeout.
func (c *Scripts) EvalAcked(ctx context.Context, s *Script, replicas int, timeout time.Duration,
	send func(command, body string, wait [2]string) (Reply, int, error),
) (r Reply, acked int, err error) {
	left := timeout
	r, err = c.Eval(ctx, s, func(command, body string) (r Reply, err error) {
		sent := time.Now()
		r, acked, err = send(command, body, WaitArgs(replicas, left))
		left -= time.Since(sent)
		return r, err
	})
	return r, acked, err
}
