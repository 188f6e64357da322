package locker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/acquisition"
	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// maxNames is the maximum number of different names in one [AcquireAll] or [DoAll]. Each name may
// take a round trip. To lock more names, lock one name for all of them.
const maxNames = 64

// AcquireAll acquires the locks of all reqs, or none of them.
//
// It first makes one attempt at each lock, all at the same time. These attempts do not pass waiters
// of this process. Commands to one server travel together. If a lock is not free and the call may
// wait, AcquireAll keeps the locks before that one in the order of their names, releases those
// behind it, and acquires the rest one after another in that order. So calls never deadlock with one
// another. Two calls without a wait for the same names may both fail.
//
// If one lock cannot be acquired, or one is lost before the last is acquired, AcquireAll releases
// those it has, all at the same time. If ctx or MaxWait ends before these releases are answered, it
// returns at most 250 ms later, and they continue in the background.
//
// AcquireAll under another lock acquires out of order: two such callers can deadlock. Ask for all
// names in one call.
//
// Locks acquired early must outlast the wait for the others: let l renew its locks
// (strategies/watchdog, as in holdfast.New), or bound the wait by less than the TTL.
//
// The shortest MaxWait of reqs bounds the whole call, and the call does not wait if a request has
// NoWait. Requests for the same name share one lock. It is exclusive if one of them is, and fenced
// if one of them is. It has the longest TTL and MinHold, and the first Note given. A request
// without an Owner takes the Owner of the others.
//
// An error is an [OpError] with the name of the failed lock, and with the errors of [Locker]. It
// matches ErrLost if a lock was lost before the last was acquired. It matches ErrInvalid, and
// nothing is sent, if
//   - a request is invalid or has Resume,
//   - requests for the same name have different Owners, or differ in Permits,
//   - there are no requests, or requests for more than 64 names,
//   - ctx or l is nil.
func AcquireAll(ctx context.Context, l Locker, reqs []Request) (*Locks, error) {
	return acquireAll(ctx, l, reqs, "AcquireAll")
}

// DoAll acquires the locks of all reqs as [AcquireAll] does, calls fn in the caller's goroutine,
// and releases all locks when fn returns, panics or calls runtime.Goexit. fn's ctx ends when any of
// the locks is lost; its cause is that [LostError]. It carries each hold and its owner for the
// lock's name, as the ctx of [Do] does.
//
// The errors are those of AcquireAll and of [Do]. A nil error means that fn returned nil, and that
// each lock was held until fn returned or released it.
func DoAll(ctx context.Context, l Locker, reqs []Request, fn func(context.Context, *Locks) error) error {
	if fn == nil {
		return opError("acquire", firstName(reqs), argument.Invalid("DoAll function", "nil", "a function"))
	}
	locks, err := acquireAll(ctx, l, reqs, "DoAll")
	if err != nil {
		return err
	}
	return doHeld(ctx, locks, fn)
}

func acquireAll(ctx context.Context, l Locker, reqs []Request, caller string) (*Locks, error) {
	if err := validateCall(ctx, l, caller); err != nil {
		return nil, opError("acquire", firstName(reqs), err)
	}
	sorted, err := sortRequests(reqs, caller)
	if err != nil {
		return nil, err
	}
	locks := &Locks{held: make([]*Lock, 0, len(sorted))}
	if err := locks.acquire(ctx, l, sorted); err != nil {
		return nil, err
	}
	locks.place(reqs, sorted)
	return locks, nil
}

// acquire acquires the locks of reqs, sorted by name, or none.
func (s *Locks) acquire(ctx context.Context, l Locker, reqs []Request) error {
	wait, noWait := bounds(reqs)
	for i := range reqs {
		reqs[i].NoWait, reqs[i].MaxWait = noWait, 0
		if noWait {
			reqs[i].MaxWait = wait
		}
	}
	ctx, call := acquisition.Begin(ctx)
	bounded, end := ctx, time.Time{}
	if wait > 0 {
		end = time.Now().Add(wait)
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeoutCause(ctx, wait, ErrMaxWait)
		defer cancel()
	}
	u, done := undo{ctx: bounded}, false
	defer func() {
		if !done { // also if l panics
			u.release(s.held)
		}
		u.whenReleased(call.End)
	}()
	parts := make([]*acquisition.Acquisition, len(reqs)) // of call, one for each lock of the first try
	defer func() {
		for _, part := range parts {
			if part != nil {
				part.Pass()
			}
		}
	}()
	before, tried := s.try(bounded, l, reqs, parts)
	if tried != nil {
		if noWait || s.Err() != nil || permanent(tried) {
			return s.failure(ctx, failedName(tried), tried)
		}
		if endOf(bounded, end) == nil && u.release(s.held[before:]) {
			s.held = s.held[:before]
			for _, part := range parts[before:] {
				part.End()
			}
		}
		if over := endOf(bounded, end); over != nil {
			return s.failure(ctx, failedName(tried), endedDuring(over, tried))
		}
	}
	err := s.acquireRest(ctx, l, reqs[len(s.held):], end)
	if err != nil && errors.Is(tried, ErrUnknownOutcome) {
		err = afterUnknown(err, tried)
	}
	done = err == nil
	return err
}

// try makes one attempt at each of several locks, all at the same time. It ends with any of them.
// err is the worst of the errors; nil if all are acquired. before is the number of locks acquired
// before the first failure. parts gets the Acquisition of each.
func (s *Locks) try(ctx context.Context, l Locker, reqs []Request, parts []*acquisition.Acquisition) (before int, err error) {
	if len(reqs) == 1 {
		return 0, nil
	}
	if !reqs[0].NoWait {
		ctx = lease.WithWaiting(ctx, lease.Waiting{Behind: true})
	}
	trying, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	locks, errs, unwatch := make([]*Lock, len(reqs)), make([]error, len(reqs)), make([]func() bool, len(reqs))
	defer func() { // also if l panics
		s.held = slices.DeleteFunc(locks, func(lock *Lock) bool { return lock == nil })
		for _, stop := range unwatch {
			if stop != nil {
				stop()
			}
		}
	}()
	together(trying, len(reqs), func(ctx context.Context, i int) {
		ctx, parts[i] = acquisition.Begin(ctx)
		req := reqs[i]
		req.NoWait = true
		lock, err := l.Acquire(ctx, req)
		switch {
		case err != nil:
			errs[i] = opError("acquire", req.Name, err)
		case lock == nil:
			errs[i] = opError("acquire", req.Name, errors.New("the Locker returned no lock"))
		default:
			locks[i], unwatch[i] = lock, lock.load().afterDone(&afterDone{f: lost, signal: true})
		}
	})
	before = slices.IndexFunc(errs, func(err error) bool { return err != nil })
	return before, worst(errs)
}

// worst returns the error to report of several: a permanent one, one of unknown outcome, or else
// the first one. A refusal must not conceal the others.
func worst(errs []error) error {
	var first, lasting, unknown error
	for _, err := range slices.Backward(errs) {
		switch {
		case err == nil:
			continue
		case permanent(err):
			lasting = err
		case errors.Is(err, ErrUnknownOutcome):
			unknown = err
		}
		first = err
	}
	if op, ok := errors.AsType[*OpError](lasting); ok && unknown != nil {
		return &OpError{op.Op, op.Name, fmt.Errorf("%w (beside it: %w)", op.Err, unknown)}
	}
	return cmp.Or(lasting, unknown, first)
}

// afterUnknown adds tried, the error of a first try of unknown outcome, to err, the error of the
// call. A refusal stays a refusal: a possible hold of the first try is being removed.
func afterUnknown(err, tried error) error {
	op, ok := errors.AsType[*OpError](err)
	switch {
	case !ok, errors.Is(err, ErrNotAcquired) && op.Name == failedName(tried):
		return err
	case errors.Is(err, ErrNotAcquired):
		return &OpError{op.Op, op.Name, fmt.Errorf("%w (the first try: %v)", op.Err, tried)} //nolint:errorlint // it must not match
	default:
		return &OpError{op.Op, op.Name, fmt.Errorf("%w (the first try: %w)", op.Err, tried)}
	}
}

// endOf returns the reason for the end of a call with that ctx and end; nil if it has not ended.
func endOf(ctx context.Context, end time.Time) error {
	if ctx.Err() == nil && !end.IsZero() && !time.Now().Before(end) {
		return ErrMaxWait // the timer is late
	}
	return lease.ContextErr(ctx)
}

// endedDuring adds the end of the call to err, the error of a first try.
func endedDuring(end, err error) error {
	op, wrapped := errors.AsType[*OpError](err)
	if !wrapped || errors.Is(err, end) {
		return err
	}
	return &OpError{op.Op, op.Name, fmt.Errorf("%w: %w", end, op.Err)}
}

// permanent reports whether another attempt would only repeat err. middleware/retry gives up by the
// same rule.
func permanent(err error) bool { return !driver.Transient(err) }

// acquireRest acquires the locks of reqs one after another. It ends with any lock in s. end is the
// call's end, or zero.
func (s *Locks) acquireRest(ctx context.Context, l Locker, reqs []Request, end time.Time) error {
	// The acquires end with any of the locks, but are not made in its Context: a trace shows them
	// side by side.
	waiting, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	for _, lock := range s.held {
		defer lock.load().afterDone(&afterDone{f: lost, signal: true})() //nolint:gocritic // until the last one is acquired
	}
	if err := s.Err(); err != nil {
		return s.failure(ctx, "", err)
	}
	for _, req := range reqs {
		if !end.IsZero() {
			if req.MaxWait = time.Until(end); req.MaxWait <= 0 {
				return opError("acquire", req.Name, ErrMaxWait)
			}
		}
		lock, err := l.Acquire(waiting, req)
		if err == nil {
			s.held = append(s.held, lock)
			defer lock.load().afterDone(&afterDone{f: lost, signal: true})() //nolint:gocritic // until the last one is acquired
			err = s.Err()
		}
		if err != nil {
			return s.failure(ctx, req.Name, err)
		}
	}
	return nil
}

// failedName returns the name in the OpError of err.
func failedName(err error) string {
	if op, ok := errors.AsType[*OpError](err); ok {
		return op.Name
	}
	return ""
}

// failure returns the error of a call that failed with err at name, or nil.
func (s *Locks) failure(ctx context.Context, name string, err error) error {
	if err == nil {
		return nil
	}
	ended, wasLost := errors.AsType[*LostError](s.Err())
	switch {
	case !wasLost || ctx.Err() != nil:
		return opError("acquire", name, err)
	case errors.Is(err, ErrUnknownOutcome):
		return &OpError{"acquire", ended.Name, fmt.Errorf("%w (while the next one was acquired: %w)", ended, err)}
	default:
		return &OpError{"acquire", ended.Name, ended}
	}
}
