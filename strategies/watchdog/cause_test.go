//nolint:forbidigo // fake time
package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// If a lease ends for lack of a renewal, the loss has the cause, even a permanent one. A failure
// before a success is not reported.
func TestSaysWhyItRanOut(t *testing.T) {
	eachInMemory(t, watchdog.Config{}, map[string]error{
		"no permission": &driver.ServerError{Text: "NOPERM User locks has no permissions to run the 'evalsha' command", Err: errors.New("the client's")},
		"no connection": fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, io.EOF),
		"closed":        locker.ErrClosed,
		"unsupported":   errors.ErrUnsupported,
	}, func(t *testing.T, server *lockertest.Locker, l locker.Locker, refused error) {
		start := time.Now()
		again := &locktrace.Trace{Renewed: func(context.Context, locktrace.RenewedInfo) { server.FailRenew(refused) }}
		lock := acquire(t, locktrace.With(t.Context(), again), l, locker.Request{})
		server.FailRenew(refused)
		<-lock.Done()
		check.Equal(t, "time until the loss", time.Since(start), ttl)
		match(t, lock.Err(), locker.ErrLost, refused)
		check.Equal(t, "code", driver.CodeOf(lock.Err()), driver.CodeOf(refused))
		text := `holdfast: lock "job" was lost: its Deadline passed: it was not renewed: ` + refused.Error()
		check.Equal(t, "text", lock.Err().Error(), text)
		match(t, lock.Release(t.Context()), locker.ErrLost, refused)
	})
}

// stubborn is a Locker whose renewals fail, then succeed, then block, whatever their ctx says.
type stubborn struct {
	granting
	renewals chan error
}

func (s stubborn) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	return grant(ctx, req, s), nil
}

func (s stubborn) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if op.Kind == lease.OpRenew {
		if err := <-s.renewals; err != nil {
			return lease.Result{}, err
		}
	}
	return s.granting.Do(ctx, op)
}

func TestBlamesNoFailureThatWasHealed(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		server := stubborn{renewals: make(chan error, 2)}
		server.renewals <- io.EOF
		server.renewals <- nil
		lock := acquire(t, t.Context(), locker.Must(watchdog.New(watchdog.Config{}))(server), locker.Request{})
		<-lock.Done()
		match(t, lock.Err(), locker.ErrLost)
		check.IsNot(t, lock.Err(), io.EOF) // a failure followed by a success
		close(server.renewals)
		synctest.Wait()
		match(t, lock.Release(t.Context()), locker.ErrLost)
	})
}

// A single renewal without a reply does not use up the lease, even if AttemptTimeout is long in
// proportion to the TTL.
func TestRenewalLeavesTimeForRepetitions(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		s := newServer(t)
		l := locker.Must(watchdog.New(watchdog.Config{}))(locker.Must(single.New(s, single.Config{AttemptTimeout: ttl - time.Second})))
		locks := acquireMany(t, t.Context(), l, 100, "", ttl)
		time.Sleep(ttl / 4)
		s.silence(true)
		time.Sleep(ttl / 3)
		s.silence(false)
		time.Sleep(2 * ttl)
		release(t, locks...)
	})
}
