package locker

import (
	"slices"
	"time"
)

// minTick and maxTick bound how often a wait for the end of a lease looks at the wall clock, at most: timers stand still while a machine
// is suspended, leases do not.
const (
	minTick = time.Second
	maxTick = 10 * time.Second
)

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Done is closed when the lock is released, lost, or past its Deadline, whether or not the server can be reached. It is a
// signal, not a barrier: see the package comment.
func (l *Lock) Done() <-chan struct{} {
	if !l.valid() {
		return closedChan
	}
	l.mu.Lock()
	ended := l.expire()
	if l.done == nil {
		if l.err != nil {
			l.done = closedChan
		} else {
			l.done = make(chan struct{})
		}
	}
	l.watch()
	done := l.done
	l.mu.Unlock()
	ended.run()
	return done
}

// Err is nil while the lock is held, then an error that matches ErrReleased or ErrLost, for good.
func (l *Lock) Err() error {
	if !l.valid() {
		return ErrNotHeld
	}
	l.mu.Lock()
	ended := l.expire()
	err := l.err
	l.mu.Unlock()
	ended.run()
	return err
}

// peek is Err without acting on it: printing a lock must run no callback.
func (l *Lock) peek() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && l.left() <= 0 {
		return lost(l.cause)
	}
	return l.err
}

type afterDone struct{ f func(error) }

// AfterDone calls f once, with what Err says, when the lock ends; at once if it has ended. It takes no goroutine per lock:
// f runs in the goroutine that ends the lock (Release's caller, a renewal's, a timer's, that of whoever asks Err or Done just
// past the Deadline) and should be short. stop takes f back; it reports whether f will now never run.
func (l *Lock) AfterDone(f func(error)) (stop func() bool) {
	if !l.valid() {
		f(ErrNotHeld)
		return func() bool { return false }
	}
	entry := &afterDone{f}
	l.mu.Lock()
	ended := l.expire()
	err := l.err
	if err == nil {
		l.after = append(l.after, entry)
		l.watch()
	}
	l.mu.Unlock()
	ended.run()
	if err != nil {
		f(err)
		return func() bool { return false }
	}
	return func() bool { return l.forget(entry) }
}

func (l *Lock) forget(entry *afterDone) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.after, entry)
	if i < 0 {
		return false
	}
	l.after = slices.Delete(l.after, i, i+1) // which lets go of it
	return true
}

// ending is the work left when a lock has ended: to be run without the mutex.
type ending struct {
	lock    *Lock
	tracing *tracing
	after   []*afterDone
	err     error
}

func (e *ending) run() {
	if e == nil {
		return
	}
	for t := e.tracing; t != nil; t = t.next {
		t.lost(e.lock, e.err)
	}
	for _, a := range e.after {
		a.f(e.err)
	}
}

// end records why the lock is no longer held, unless it ended before. The mutex is held. nil: nobody needs to be told.
func (l *Lock) end(err error) *ending {
	if l.err != nil {
		return nil
	}
	l.err = err
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.done != nil {
		close(l.done)
	}
	if l.after == nil && l.tracing == nil {
		return nil
	}
	e := &ending{lock: l, tracing: l.tracing, after: l.after, err: err}
	l.after = nil
	return e
}

// expire ends a lock whose Deadline has passed. The mutex is held.
func (l *Lock) expire() *ending {
	if l.err != nil || l.left() > 0 {
		return nil
	}
	return l.end(lost(l.cause))
}

// left is the time to the Deadline, by the monotonic or the wall clock, whichever says less.
func (l *Lock) left() time.Duration {
	if l.deadline.IsZero() {
		return 1<<63 - 1
	}
	now := time.Now()
	return min(l.deadline.Sub(now), l.deadline.Round(0).Sub(now.Round(0)))
}

// watch starts the timer that ends the lock. The mutex is held. A lock that nobody waits for has none.
func (l *Lock) watch() {
	if l.err != nil || l.timer != nil || l.deadline.IsZero() {
		return
	}
	l.timer = time.AfterFunc(l.tick(), l.ticked)
}

func (l *Lock) tick() time.Duration { return min(l.left(), min(max(minTick, l.grant.TTL/8), maxTick)) }

func (l *Lock) ticked() {
	l.mu.Lock()
	ended := l.expire()
	if l.err == nil && !l.deadline.IsZero() {
		l.timer.Reset(l.tick())
	}
	l.mu.Unlock()
	ended.run()
}
