package conformance

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/handover"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// subscribes are the features for a wait with wake-ups.
var subscribes = []suite.Feature{suite.FeatureSubscribe}

// never is a policy without polling: only wake-ups and the end of the lease end a pause.
func never() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }

// waiting puts middleware/retry around a Locker.
func (t *caseT) waiting(l locker.Locker, cfg retry.Config) locker.Locker {
	t.Helper()
	waits := t.h.waits
	if waits == nil {
		waits = retry.New
	}
	mw, err := waits(cfg)
	t.OK(err, "retry.New")
	return t.around(l, mw)
}

// around puts middleware around a Locker, inside Harness.Around.
func (t *caseT) around(l locker.Locker, mw locker.Middleware) locker.Locker {
	t.Helper()
	if _, isWrapped := l.(wrapped); !isWrapped {
		return mw(l)
	}
	return t.wrap(mw(unwrap(l)))
}

// handingOver puts middleware/retry and middleware/handover around a Locker. No tenure ends within a
// case.
func (t *caseT) handingOver(l locker.Locker) locker.Locker {
	t.Helper()
	handsOver := t.h.handsOver
	if handsOver == nil {
		handsOver = handover.New
	}
	mw, err := handsOver(handover.Config{Tenure: time.Hour})
	t.OK(err, "handover.New")
	return t.around(t.waiting(l, retry.Config{}), mw)
}

// wait acquires in the background. It returns the channel of the lock once the acquire waits for
// the holder.
func (t *caseT) wait(l locker.Locker, req locker.Request) <-chan *locker.Lock {
	t.Helper()
	return t.waitAs(l, req, func(locktrace.WaitingInfo) bool { return true })
}

// waitAs is wait, but returns once a matching wait has begun.
func (t *caseT) waitAs(l locker.Locker, req locker.Request,
	match func(locktrace.WaitingInfo) bool) <-chan *locker.Lock {
	t.Helper()
	return t.waitUnder(t.Ctx, l, req, match)
}

// waitUnder is waitAs under a ctx of its own.
func (t *caseT) waitUnder(ctx context.Context, l locker.Locker, req locker.Request,
	match func(locktrace.WaitingInfo) bool) <-chan *locker.Lock {
	t.Helper()
	waiting, got := make(chan struct{}, 1), make(chan *locker.Lock, 1)
	ctx = locktrace.With(ctx, &locktrace.Trace{Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
		if match(info) {
			select {
			case waiting <- struct{}{}:
			default:
			}
		}
	}})
	go func() {
		lock, err := l.Acquire(ctx, req)
		if err != nil {
			t.Errorf("Acquire that waits: %v", err)
		}
		got <- lock
	}()
	t.Event(waiting, "the waiter waits")
	return got
}

// got waits for the lock of wait.
func (t *caseT) got(ch <-chan *locker.Lock, what string) *locker.Lock {
	t.Helper()
	timer := time.NewTimer(t.Limit)
	defer timer.Stop()
	select {
	case lock := <-ch:
		if lock == nil {
			t.Fatalf("%s: the waiter did not get the lock", what)
		}
		return lock
	case <-timer.C:
		t.Fatalf("%s: the waiter has no lock after %v", what, t.Limit)
		return nil
	}
}
