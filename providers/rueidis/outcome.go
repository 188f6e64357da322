package rueidis

import (
	"context"
	"errors"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// outcome returns nil if a command was answered with anything but an error, otherwise an error of
// package driver. closing is d.closing from before the command was sent.
func (d *rueidisDriver) outcome(ctx context.Context, res rueidis.RedisResult, closing bool) error {
	if err := res.NonRedisError(); err != nil {
		return d.unanswered(ctx, err, closing)
	}
	if d.closing.Load() {
		d.closing.Store(false)
	}
	refusal, ok := rueidis.IsRedisErr(res.Error())
	if !ok { // no error, or a nil reply
		return nil
	}
	text, _ := res.ToString() // refusal has lost an "ERR "
	return adapter.NewServerError(text, refusal)
}

func (d *rueidisDriver) unanswered(ctx context.Context, err error, closing bool) error {
	notSent := adapter.DialFailed(err) || errors.Is(err, rueidis.ErrNoSlot)
	if refusal, ok := rueidis.IsRedisErr(err); ok { // an answer to the client's handshake, not to the command
		notSent = true
		err = adapter.NewServerError(refusal.Error(), refusal)
	}
	permanent := false
	if errors.Is(err, rueidis.ErrClosing) {
		// Commands in flight get it too, when the client is closed or leaves a former master. So the
		// first of them proves nothing; a command sent after it goes nowhere. In a cluster the next
		// one may be of another former node.
		d.closing.Store(true)
		closed := isClosed(d.clientClosed)
		notSent = closing && (closed || d.clientClosed == nil && !d.cluster)
		permanent = notSent && (closed || d.client.Mode() == rueidis.ClientModeStandalone)
	}
	if adapter.Ended(ctx) == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = &givenUpError{err}
	}
	switch {
	case permanent:
		return driver.Permanent(driver.NotSent(err))
	case notSent:
		return driver.NotSent(err)
	}
	return err
}

// givenUpError is the error of a call whose connection another call or the client gave up. It does
// not match the error of their context: a caller would take that for its own.
type givenUpError struct{ err error }

func (e *givenUpError) Error() string { return "rueidis: connection given up: " + e.err.Error() }
