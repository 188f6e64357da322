package rueidis

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// outcome tells what came of a command: nil if it was answered with anything but an error, otherwise an error as package
// driver means it. closing is what health.closing was before.
func (a *adapter) outcome(ctx context.Context, res rueidis.RedisResult, closing bool) error {
	if err := res.NonRedisError(); err != nil {
		return a.unanswered(ctx, err, closing)
	}
	a.health.answered()
	err := res.Error()
	if err == nil || rueidis.IsRedisNil(err) {
		return nil
	}
	text, _ := res.ToString() // err has lost an "ERR "
	return driver.NewServerError(text, err)
}

func (a *adapter) unanswered(ctx context.Context, err error, closing bool) error {
	a.health.answers.Store(0)
	notSent := driver.DialFailed(err) || errors.Is(err, rueidis.ErrNoSlot)
	if refusal, ok := rueidis.IsRedisErr(err); ok { // no answer to the command, but to the client's introducing itself
		notSent = true
		err = driver.NewServerError(refusal.Error(), err)
	}
	if errors.Is(err, rueidis.ErrClosing) {
		// What is in flight when the client is closed, or leaves a server that is no longer the master, gets it too. So
		// the first of them proves nothing; a command that is sent after it goes nowhere.
		a.health.closing.Store(true)
		notSent = closing
	}
	over := ended(ctx)
	switch {
	case errors.Is(over, context.DeadlineExceeded):
		until := time.Now().Add(avoid)
		a.health.dead.Store(&until)
	case over == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		err = &givenUpError{err}
	}
	if notSent {
		return driver.NotSent(err)
	}
	return err
}

// ended returns why ctx is over. A connection's deadline may come a moment before the timer of the context that set it.
func ended(ctx context.Context) error {
	if at, dated := ctx.Deadline(); dated && !time.Now().Before(at) {
		return cmp.Or(ctx.Err(), context.DeadlineExceeded)
	}
	return ctx.Err()
}

// givenUpError is the error of a call whose connection another call or the client gave up. It does not match the error of
// their context, which a caller would take for its own.
type givenUpError struct{ err error }

func (e *givenUpError) Error() string { return "rueidis: connection given up: " + e.err.Error() }
