package locker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/internal/text"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// MaxNames is the maximum number of different names in one [AcquireAll] or [DoAll]. Each name may
// take a round trip. To lock more names than that, lock one name that stands for all of them.
const MaxNames = 64

// undoGrace is how long a failed AcquireAll waits for its releases after ctx or MaxWait has ended.
const undoGrace = 250 * time.Millisecond

// AcquireAll acquires the locks of all reqs, or none of them.
//
// It first tries all of them in one round trip, if the strategy and all middleware around it take
// part (see [BatchAcquirer]) and the names are at one server or, in a cluster, have the same hash
// tag. Otherwise, and if one of the locks is held and the call may wait, it acquires them one after
// another, in the order of their names and not of reqs. So calls never deadlock with one another.
//
// If one lock cannot be acquired, or one is lost before the last is acquired, AcquireAll releases
// those it has, in reverse order. If ctx or MaxWait ends before these releases are answered, it
// returns at most 250 ms later, and they continue in the background.
//
// A caller that holds a lock while it calls AcquireAll acquires out of order, and can deadlock with
// a caller that does the same. Ask for all names in one call.
//
// Locks acquired early must outlast the wait for the others: let l renew its locks
// (strategies/watchdog, as in holdfast.New), or bound the wait by less than the TTL.
//
// The shortest MaxWait of reqs bounds the whole call, and the call does not wait if a request has
// NoWait. Requests for the same name share one lock. It is exclusive if one of them is, and fenced
// if one of them is. It has the longest TTL and MinHold, and the first Note that is given. A
// request without an Owner takes that of the others.
//
// An error is an [OpError] that names the lock that failed, with the errors of [Locker]. It matches
// ErrLost if a lock was lost before the last was acquired. It matches ErrInvalid, and nothing is
// sent, if
//   - a request is invalid or has Resume,
//   - requests for the same name have different Owners, or differ in Permits,
//   - there are no requests, or requests for more than [MaxNames] names,
//   - ctx or l is nil.
func AcquireAll(ctx context.Context, l Locker, reqs []Request) (*Locks, error) {
	return acquireAll(ctx, l, reqs, "AcquireAll")
}

// DoAll acquires the locks of all reqs as [AcquireAll] does, calls fn in the caller's goroutine,
// and releases the locks in reverse order when fn returns, panics or calls runtime.Goexit. fn's ctx
// ends when any of the locks is lost; its cause is the [LostError] of that lock. It carries each
// hold and its owner for the lock's name, as the ctx of [Do] does.
//
// The errors are those of AcquireAll and of [Do]. A nil error means that fn returned nil, and that
// each lock was held until fn returned or released it.
func DoAll(ctx context.Context, l Locker, reqs []Request, fn func(context.Context, *Locks) error) error {
	if fn == nil {
		return opError("acquire", firstName(reqs), driver.Invalid("DoAll function", "nil", "a function"))
	}
	locks, err := acquireAll(ctx, l, reqs, "DoAll")
	if err != nil {
		return err
	}
	return doHeld(ctx, locks, fn)
}

func acquireAll(ctx context.Context, l Locker, reqs []Request, caller string) (*Locks, error) {
	switch {
	case ctx == nil:
		return nil, opError("acquire", firstName(reqs), driver.NilContext(caller+" ctx"))
	case l == nil:
		return nil, opError("acquire", firstName(reqs), driver.Invalid(caller+" locker", "nil", "a Locker"))
	}
	sorted, err := sortRequests(reqs, caller)
	if err != nil {
		return nil, err
	}
	locks := &Locks{held: make([]*Lock, 0, len(sorted))}
	if err := locks.acquire(ctx, l, sorted); err != nil {
		return nil, err
	}
	locks.place(reqs)
	return locks, nil
}

// acquire acquires the locks of reqs in the order of reqs, or none.
func (s *Locks) acquire(ctx context.Context, l Locker, reqs []Request) error {
	wait, noWait := bounds(reqs)
	bounded, end := ctx, time.Time{}
	if wait > 0 {
		end = time.Now().Add(wait)
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeoutCause(ctx, wait, ErrMaxWait)
		defer cancel()
	}
	for i := range reqs {
		reqs[i].NoWait, reqs[i].MaxWait = noWait, 0
		if noWait {
			reqs[i].MaxWait = wait
		}
	}
	over, tried := s.acquireBatch(bounded, l, reqs)
	if over {
		return tried
	}
	err := s.acquireEach(ctx, bounded, l, reqs, end)
	if err != nil && errors.Is(tried, ErrUnknownOutcome) && !errors.Is(err, ErrNotAcquired) {
		return &OpError{"acquire", failedName(err), fmt.Errorf("%w (the first try: %w)", err, tried)}
	}
	return err
}

// acquireEach acquires the locks of reqs one after another, or none. end is that of the call, or
// zero. bounded is ctx with that end.
func (s *Locks) acquireEach(ctx, bounded context.Context, l Locker, reqs []Request, end time.Time) error {
	ctx, acquisition := lease.BeginAcquisition(ctx)
	done := false
	defer func() {
		if done {
			acquisition.End()
		} else { // also if l panics
			s.undo(bounded, acquisition.End)
		}
	}()
	// The acquires end with any of the locks, but are not made in its Context: a trace shows them
	// side by side.
	waiting, lost := context.WithCancelCause(ctx)
	defer lost(nil)
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
	done = true
	return nil
}

// acquireBatch makes one attempt to acquire the locks of all reqs in one round trip, if l can. over
// reports whether the call ends with its result. Otherwise the locks are to be acquired one after
// another, and err is the error of the attempt, if one was made.
func (s *Locks) acquireBatch(ctx context.Context, l Locker, reqs []Request) (over bool, err error) {
	acquirer, ok := l.(BatchAcquirer)
	if !ok || len(reqs) < 2 {
		return false, nil
	}
	batch, err := acquirer.AcquireBatch(ctx, reqs)
	if batch == nil {
		return false, nil
	}
	defer batch.End()
	switch {
	case err == nil:
		return s.claimAll(ctx, l, reqs, batch)
	case decides(ctx, err, reqs[0].NoWait):
		return true, claimError(ctx, l, reqs, batch, err)
	default:
		return false, err
	}
}

// decides reports whether the call ends with err, the error of a batch.
func decides(ctx context.Context, err error, noWait bool) bool {
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		return noWait || ctx.Err() != nil
	case errors.Is(err, ErrNotAcquired), errors.Is(err, ErrLost):
		return noWait
	default: // an error that acquiring one after another would only repeat
		return errors.Is(err, driver.ErrPermanent) || driver.CodeOf(err) == "WRONGTYPE"
	}
}

// claimAll passes the locks of a batch on through l. over is false if middleware in l refuses a
// request for a reason of its own, or changes it. Then all locks are released.
func (s *Locks) claimAll(ctx context.Context, l Locker, reqs []Request, batch Batch) (over bool, err error) {
	claimed := &Locks{}
	defer func() {
		rest := &Locks{held: batch.Unclaimed()}
		over = err == nil || errors.Is(err, ErrLost) || len(rest.held) < len(reqs)-len(claimed.held)
		rest.undo(ctx, func() {})
	}()
	claims := slices.Clone(reqs)
	for i := range claims {
		claims[i].NoWait, claims[i].MaxWait = true, 0
	}
	if err = claimed.acquireEach(batch.Context(ctx), ctx, l, claims, time.Time{}); err == nil {
		s.held = claimed.held
	}
	return true, err
}

// claimError passes the error of a batch on through l, so that middleware reports the acquire that
// failed.
func claimError(ctx context.Context, l Locker, reqs []Request, batch Batch, err error) error {
	i := slices.IndexFunc(reqs, func(req Request) bool { return req.Name == failedName(err) })
	if i < 0 {
		return err
	}
	req := reqs[i]
	req.NoWait, req.MaxWait = true, 0
	lock, claimed := l.Acquire(batch.Context(context.WithoutCancel(ctx)), req)
	if claimed == nil { // l made a lock of its own
		(&Locks{held: []*Lock{lock}}).undo(ctx, func() {})
		return err
	}
	return opError("acquire", req.Name, claimed)
}

// failedName returns the name in the OpError of err.
func failedName(err error) string {
	if op, ok := errors.AsType[*OpError](err); ok {
		return op.Name
	}
	return ""
}

// failure returns the error of a call that failed with err while it acquired name.
func (s *Locks) failure(ctx context.Context, name string, err error) error {
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

// undo releases the locks of a call that failed, and then calls end. It waits for that until ctx
// ends, and undoGrace longer.
func (s *Locks) undo(ctx context.Context, end func()) {
	if len(s.held) == 0 {
		end()
		return
	}
	for _, lock := range s.held {
		lock.load().dropMinHold()
	}
	undone := make(chan struct{})
	go func() {
		defer close(undone)
		defer end()
		_ = s.Release(ctx)
	}()
	select {
	case <-undone:
	case <-ctx.Done():
		grace := time.NewTimer(undoGrace)
		defer grace.Stop()
		select {
		case <-undone:
		case <-grace.C:
		}
	}
}

// bounds returns the strictest bounds of reqs: the shortest MaxWait, zero if there is none, and
// whether one has NoWait.
func bounds(reqs []Request) (wait time.Duration, noWait bool) {
	for _, req := range reqs {
		wait, noWait = shorter(wait, req.MaxWait), noWait || req.NoWait
	}
	return wait, noWait
}

// shorter returns the shorter one of two bounds; zero is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// sortRequests returns reqs in the order of their names, with one request for each name.
func sortRequests(reqs []Request, caller string) (sorted []Request, err error) {
	if len(reqs) == 0 {
		return nil, opError("acquire", "", driver.Invalid(caller+" requests", "none", "1 to 64 names"))
	}
	for _, req := range reqs {
		err := req.Validate()
		if err == nil && !req.Resume.IsZero() {
			err = driver.Invalid("Request.Resume", "a Handle", "none in "+caller+"; Resume takes a hold over")
		}
		if err != nil {
			return nil, opError("acquire", req.Name, err)
		}
	}
	byName := slices.Clone(reqs)
	slices.SortStableFunc(byName, func(a, b Request) int { return strings.Compare(a.Name, b.Name) })
	for _, req := range byName {
		last := len(sorted) - 1
		if last < 0 || sorted[last].Name != req.Name {
			sorted = append(sorted, req)
			continue
		}
		if sorted[last], err = mergeRequests(sorted[last], req); err != nil {
			return nil, opError("acquire", req.Name, err)
		}
	}
	if len(sorted) > MaxNames {
		return nil, opError("acquire", "",
			driver.Invalid(caller+" requests", fmt.Sprintf("%d names", len(sorted)), "1 to 64 names"))
	}
	return sorted, nil
}

// mergeRequests returns a request that satisfies both of two requests for one name. It fails if
// they differ in a field that cannot be merged.
func mergeRequests(a, b Request) (Request, error) {
	merged := a
	if b.Mode == Exclusive {
		merged.Mode = Exclusive
	}
	merged.MinHold = max(a.MinHold, b.MinHold)
	if merged.TTL = max(a.TTL, b.TTL); merged.TTL != 0 { // one that leaves it out may have the longer MinHold
		merged.TTL = max(merged.TTL, merged.MinHold)
	}
	merged.MaxWait = shorter(a.MaxWait, b.MaxWait)
	merged.NoWait = a.NoWait || b.NoWait
	merged.Fenced = a.Fenced || b.Fenced
	merged.Permits = max(a.Permits, b.Permits)
	if a.Owner == "" {
		merged.Owner = b.Owner
	}
	if a.Note == "" {
		merged.Note = b.Note
	}
	switch {
	case b.Owner != "" && b.Owner != merged.Owner:
		return Request{}, driver.Invalid("Request.Owner",
			text.Quote(merged.Owner)+" and "+text.Quote(b.Owner)+" for one name", "one owner for each name")
	case restOf(a) != restOf(b):
		return Request{}, driver.Invalid("Request", "two for one name that cannot be merged",
			"ones that differ in Mode, TTL, MinHold, MaxWait, NoWait, Fenced and Note")
	case max(a.Permits, 1) != max(b.Permits, 1):
		return Request{}, driver.Invalid("Request.Permits",
			fmt.Sprintf("%d and %d for one name", max(a.Permits, 1), max(b.Permits, 1)),
			"the same for all requests for a name")
	}
	return merged, nil
}

// restOf returns the fields of a request that mergeRequests cannot merge.
func restOf(r Request) Request {
	r.Mode, r.TTL, r.MinHold, r.MaxWait, r.NoWait, r.Fenced, r.Owner, r.Note, r.Permits = 0, 0, 0, 0, false, false, "",
		"", 0
	return r
}

func firstName(reqs []Request) string {
	if len(reqs) == 0 {
		return ""
	}
	return reqs[0].Name
}
