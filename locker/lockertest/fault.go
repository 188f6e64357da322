package lockertest

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// errExpired ends the Locks of Expire.
var errExpired = errors.New("expired by the test")

// faults are the due errors, the next one first.
type faults struct{ acquire, renew, release []error }

// of takes the due error of an operation on a hold, or nil.
func (f *faults) of(kind lease.OpKind) error {
	switch kind {
	case lease.OpRenew:
		return next(&f.renew)
	case lease.OpRelease, lease.OpUndo:
		return next(&f.release)
	default:
		return nil
	}
}

func next(due *[]error) error {
	if len(*due) == 0 {
		return nil
	}
	err := (*due)[0]
	*due = (*due)[1:]
	return err
}

// FailAcquire makes the next valid Acquire, or Resume, of any name fail with err, without any
// effect. Called again, it makes one more fail. A *locker.ContentionError says "held by another".
// For a lasting outage, see [Locker.SetOutage].
func (l *Locker) FailAcquire(err error) { l.fail(&l.faults.acquire, err) }

// FailRenew makes the next renewal of any lock fail with err, without any effect. Called again, it
// makes one more fail. With locker.ErrNotHeld the Lock is lost; with any other error its Deadline
// stays as it was.
func (l *Locker) FailRenew(err error) { l.fail(&l.faults.renew, err) }

// FailRelease makes the next release of any lock fail with err, without any effect: the name stays
// held until the lease ends, as after a locker.ErrUnknownOutcome. Called again, it makes one more
// fail.
func (l *Locker) FailRelease(err error) { l.fail(&l.faults.release, err) }

func (l *Locker) fail(due *[]error, err error) {
	if err == nil {
		panic("lockertest: a failure needs an error")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	*due = append(*due, err)
}

// Hold acquires a lock on behalf of another process, and returns its Lock. Neither a failure set by
// FailAcquire nor an outage applies to it. It panics if the request is not valid or the lock is not
// free.
func (l *Locker) Hold(req locker.Request) *locker.Lock {
	ctx := context.Background()
	if err := l.check(ctx, req); err != nil {
		panic(err)
	}
	if !req.Resume.IsZero() {
		panic("lockertest: Hold acquires; Acquire resumes")
	}
	req.NoWait = true
	l.mu.Lock()
	h, err := l.take(ctx, req)
	if err == nil {
		h.unrecorded = true
	}
	l.mu.Unlock()
	if err != nil {
		panic(&locker.OpError{Op: "acquire", Name: req.Name, Err: err})
	}
	return l.lock(ctx, h)
}

// Expire ends every hold of name as the end of its lease would: the Locks are lost at once, and the
// name is free. It reports whether there was any.
func (l *Locker) Expire(name string) bool {
	dropped := l.drop(name)
	for _, h := range dropped {
		l.mu.Lock()
		h.expired = true
		lock := h.lock
		l.mu.Unlock()
		if lock != nil {
			lock.MarkLost(errExpired)
		}
	}
	return len(dropped) > 0
}

// Forget frees name without telling anybody, as a server's loss of data does: the holders learn of
// it when they renew or release. It reports whether there was any.
func (l *Locker) Forget(name string) bool { return len(l.drop(name)) > 0 }

// drop takes away the holds of name.
func (l *Locker) drop(name string) []*hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of(name)
	dropped := t.live()
	t.holds = nil
	l.wake(name, lease.Op{})
	return dropped
}
