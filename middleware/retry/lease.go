package retry

import (
	"context"

	"github.com/holdfast-go/holdfast/locker"
)

// lease wakes the waiters of its own process when the hold ends: a pub/sub message takes a round
// trip more, and a foreign channel may not be heard at all.
type lease struct {
	locker.Lease
	queues *queues
	name   string
}

// notifyReleases wraps the Lease of a lock just won. A Lock without one, as a test double may
// return, stays as it is.
func (qs *queues) notifyReleases(lock *locker.Lock) {
	if lock == nil {
		return
	}
	locker.WrapLease(lock, func(inner locker.Lease) locker.Lease {
		if inner == nil {
			return nil
		}
		return &lease{inner, qs, lock.Name()}
	})
}

// Do implements locker.Lease.
func (l *lease) Do(ctx context.Context, op locker.Op) (locker.Term, error) {
	term, err := l.Lease.Do(ctx, op)
	if op.Kind == locker.OpRelease || op.Kind == locker.OpConvert {
		l.queues.released(l.name)
	}
	return term, err
}

// Unwrap lets renewals travel together: they are none of ours.
func (l *lease) Unwrap() locker.Lease { return l.Lease }

// Source implements locker.Sourced.
func (l *lease) Source() locker.Source {
	if s, ok := l.Lease.(locker.Sourced); ok {
		return s.Source()
	}
	return locker.Source{}
}
