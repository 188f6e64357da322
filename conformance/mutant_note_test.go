//realtime:ok mutants run in bubbles

package conformance

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// noting does changes of the note by f, and calls other for other operations; nil: they are sound.
func noting(f, other operates) operates {
	return func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
		switch {
		case op.Kind == lease.OpNote:
			return f(ctx, l, op)
		case other != nil:
			return other(ctx, l, op)
		default:
			return l.Lease.Do(ctx, op)
		}
	}
}

func TestNoteMutants(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	notes := func(name string, do operates, caught string) {
		m.add(name, &Harness{Dial: plain, Around: operating(do)}, sound, caught)
	}
	silent := noting(func(context.Context, *flawedLease, lease.Op) (lease.Result, error) { return lease.Result{}, nil }, nil)
	notes("a SetNote that changes nothing", silent, "a note can be changed")
	m.add("a SetNote that compares nothing", around(newSingle, Capabilities{}, func(l locker.Locker, drv driver.Driver) locker.Locker {
		return operating(noting(func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
			_, err := drv.Eval(ctx, driver.NewScript(`return redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')`), []string{l.req.Name},
				[]string{lease.NewToken() + "|me|" + op.Note})
			return lease.Result{}, err
		}, nil))(l)
	}), sound, "a note can be changed", "a lost lock gets no note")
	notes("a SetNote that is sent once", noting(func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		return l.Lease.Do(ctx, op)
	}, nil), "a change of the note whose reply is lost succeeds")
	var unknown atomic.Bool
	notes("a release that forgets a change without an answer",
		noting(func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
			result, err := l.Lease.Do(ctx, op)
			unknown.Store(err != nil)
			return result, err
		}, func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
			if op.Kind == lease.OpRelease && unknown.Load() {
				return lease.Result{}, nil // it looked for the old value
			}
			return l.Lease.Do(ctx, op)
		}), "a change of the note that nobody answers loses nothing")
	var changing atomic.Int32
	notes("a renewal that takes a change for a loss",
		noting(func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
			changing.Add(1)
			defer changing.Add(-1)
			return l.Lease.Do(ctx, op)
		}, func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
			if op.Kind == lease.OpRenew && changing.Load() > 0 {
				return lease.Result{}, locker.ErrLost
			}
			return l.Lease.Do(ctx, op)
		}), "a renewal beside a change of the note succeeds")
	m.add("a quorum whose SetNote changes nothing", aroundRedlock(func(l locker.Locker, _ []locker.Locker) locker.Locker {
		return operating(silent)(l)
	}), sound, "a quorum's note can be changed")
	m.convict()
}
