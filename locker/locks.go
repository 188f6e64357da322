package locker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/locker/internal/text"
)

// Locks holds the locks of one [AcquireAll]. Each is renewed, converted and traced on its own.
// Locks is safe for concurrent use.
type Locks struct {
	held  []*Lock // in the order of their names, as they were acquired
	asked []*Lock // the lock of each request, in the order of the requests

	mu       sync.Mutex
	err      error // of the first lock found not held; set once
	released bool  // Release was called
}

// place sets asked: the lock of each of reqs. held has the locks of sorted, in its order. Middleware
// may have given them other names.
func (s *Locks) place(reqs, sorted []Request) {
	s.asked = make([]*Lock, len(reqs))
	for i, req := range reqs {
		at, _ := slices.BinarySearchFunc(sorted, req.Name,
			func(r Request, name string) int { return strings.Compare(r.Name, name) })
		s.asked[i] = s.held[at]
	}
}

// All returns the lock of each request, in the order of the requests. Requests for one name share a
// lock.
func (s *Locks) All() []*Lock { return slices.Clone(s.asked) }

// Err returns nil while all locks are held. After that it always returns the same error: the
// [LostError] of the first lock found lost, or ErrReleased if one was released.
func (s *Locks) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errLocked()
}

// errLocked is Err. The mutex is held.
func (s *Locks) errLocked() error {
	if s.err != nil {
		return s.err
	}
	for _, lock := range s.held {
		switch err := lock.Err(); {
		case err == nil:
		case errors.Is(err, ErrLost):
			s.err = err
			return err
		default:
			s.err = err // unless another one was lost
		}
	}
	return s.err
}

// loss returns that of the first lock found lost, also after a release of another.
func (s *Locks) loss() *LostError {
	for _, lock := range s.held {
		if loss := lock.loss(); loss != nil {
			return loss
		}
	}
	return nil
}

// Context returns a copy of parent that ends when any of the locks is lost or released; its cause
// (context.Cause) is the error of that lock's Err. It carries the owner of each lock for its name.
// See [Lock.Context].
func (s *Locks) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancels := parent, make([]context.CancelFunc, len(s.held))
	for i, lock := range s.held {
		ctx, cancels[i] = lock.Context(ctx) //nolint:fatcontext // one for each of few locks
	}
	return ctx, func() {
		for _, cancel := range slices.Backward(cancels) {
			cancel()
		}
	}
}

// Release releases all locks at the same time, except those already released by the caller. It is
// terminal as [Lock.Release] is: a second call returns ErrReleased and sends nothing.
//
// The errors of the releases are joined (errors.Join). Each is an [OpError] that names its lock.
func (s *Locks) Release(ctx context.Context) (err error) {
	s.mu.Lock()
	if s.released {
		s.mu.Unlock()
		return opError("release", s.held[0].Name(), ErrReleased)
	}
	s.released = true
	if s.errLocked() == nil {
		s.err = ErrReleased
	}
	s.mu.Unlock()
	errs := make([]error, len(s.held))
	together(ctx, len(s.held), func(ctx context.Context, i int) { errs[i] = releaseOnce(ctx, s.held[i]) })
	for _, failed := range errs {
		err = join(err, failed)
	}
	return err
}

// releaseOnce releases a lock unless the caller has done so.
func releaseOnce(ctx context.Context, lock *Lock) error {
	err := lock.Release(ctx)
	if errors.Is(err, ErrReleased) {
		return nil
	}
	return err
}

// String returns the names of the locks and whether they are held.
func (s *Locks) String() string {
	var b strings.Builder
	b.WriteString("locks ")
	for i, lock := range s.held {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text.Quote(lock.Name()))
	}
	if err := s.Err(); err != nil {
		return b.String() + " (" + err.Error() + ")"
	}
	return b.String() + " (held)"
}
