package locker

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// The timer for the end of a lease also fires in between, to compare the wall clock with the
// Deadline: timers stand still while a machine is suspended, leases do not. minTick and maxTick
// bound how often.
const (
	minTick = time.Second
	maxTick = 10 * time.Second
)

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Done is Lock.Done.
func (l *lockState) Done() <-chan struct{} {
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
	l.reportInBackground(ended)
	return done
}

// Err is Lock.Err.
func (l *lockState) Err() error {
	l.mu.Lock()
	ended := l.expire()
	err := l.err
	l.mu.Unlock()
	l.reportInBackground(ended)
	return err
}

// peek returns what Err returns, but does not end the lock: printing a lock must run no callback.
func (l *lockState) peek() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && l.left() <= 0 {
		return l.expired()
	}
	return l.err
}

// afterDone is a callback for the end of a lock.
type afterDone struct {
	f      func(error)
	signal bool // f cannot block; it is called before the others, where the end is noticed
	next   *afterDone
}

// AfterDone is Lock.AfterDone.
func (l *lockState) AfterDone(f func(error)) (stop func() bool) {
	return l.afterDone(&afterDone{f: f})
}

func (l *lockState) afterDone(entry *afterDone) (stop func() bool) {
	l.mu.Lock()
	ended := l.expire()
	err := l.err
	if err == nil {
		at := &l.after
		for *at != nil {
			at = &(*at).next
		}
		*at = entry
		l.watch()
	}
	l.mu.Unlock()
	l.reportInBackground(ended)
	if err != nil {
		entry.f(err)
		return func() bool { return false }
	}
	return func() bool { return l.forget(entry) }
}

func (l *lockState) forget(entry *afterDone) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := &l.after; *at != nil; at = &(*at).next {
		if *at == entry {
			*at = entry.next
			return true
		}
	}
	return false
}

// ending is the callbacks to run, without the mutex, after a lock has ended. nil: there are none.
type ending struct {
	lock    *lockState
	tracing *tracing
	signals []*afterDone
	after   []*afterDone
	waited  bool        // after was not empty
	taken   atomic.Bool // a goroutine calls after, or has called it
	err     error
	once    sync.Once
}

// signal calls the callbacks that cannot block, in the goroutine that noticed the end and before
// any other callback.
func (e *ending) signal() {
	if e != nil {
		e.once.Do(func() {
			for _, a := range e.signals {
				a.f(e.err)
			}
		})
	}
}

// run calls all callbacks in order. A defer calls the rest even if one panics.
func (e *ending) run() {
	e.signal()
	switch {
	case e == nil:
	case e.tracing != nil:
		t := e.tracing
		e.tracing = t.next
		defer e.run()
		t.lost(e.lock, e.err)
	default:
		e.runAfter()
	}
}

// hasAfter reports whether there are callbacks of AfterDone.
func (e *ending) hasAfter() bool { return e != nil && e.waited }

// runAfter calls the callbacks of AfterDone, unless another goroutine does or has done so.
func (e *ending) runAfter() {
	if e.taken.CompareAndSwap(false, true) {
		e.callAfter()
	}
}

func (e *ending) callAfter() {
	if len(e.after) == 0 {
		return
	}
	first := e.after[0]
	e.after = e.after[1:]
	defer e.callAfter()
	first.f(e.err)
}

// end records why the lock is no longer held, unless it ended before. It returns the callbacks to
// run, nil if there are none. The mutex is held.
func (l *lockState) end(err error) *ending {
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
	if l.after == nil && (l.tracing == nil || err == ErrReleased) { //nolint:errorlint // Lost is not called then
		return nil
	}
	e := &ending{lock: l, tracing: l.tracing, err: err}
	for a := l.after; a != nil; a = a.next {
		if a.signal {
			e.signals = append(e.signals, a)
		} else {
			e.after = append(e.after, a)
		}
	}
	e.waited = len(e.after) > 0
	l.after = nil
	return e
}

// lose ends the lock as lost, and enqueues the callbacks.
func (l *lockState) lose(err error) *ending {
	e := l.end(err)
	if e != nil && (e.tracing != nil || len(e.after) > 0) {
		l.enqueue(report{run: e.run})
	}
	return e
}

// expire ends a lock whose Deadline has passed. The mutex is held.
func (l *lockState) expire() *ending {
	if l.err != nil || l.left() > 0 {
		return nil
	}
	return l.lose(l.expired())
}

// forgotten reports whether the lock is held, the Lock was garbage-collected, and nothing else can
// wait for its end or take the hold over. The first call returns false, and begins to observe the
// Lock. The mutex is held.
func (l *lockState) forgotten() bool {
	switch {
	case l.err != nil, l.done != nil, l.handleTaken.Load(), l.hasCallbacks():
		return false
	case l.strong != nil:
		l.weak, l.strong = weak.Make(l.strong), nil
		return false
	default:
		return l.weak.Value() == nil
	}
}

// hasCallbacks reports whether AfterDone has callbacks, other than those of Context, which is in
// use only as long as the Lock is reachable. The mutex is held.
func (l *lockState) hasCallbacks() bool {
	for a := l.after; a != nil; a = a.next {
		if !a.signal {
			return true
		}
	}
	return false
}

// left returns the time until the Deadline by the monotonic or the wall clock, whichever is less.
func (l *lockState) left() time.Duration {
	if l.deadline.IsZero() {
		return 1<<63 - 1
	}
	now := time.Now()
	return min(l.deadline.Sub(now), l.deadline.Round(0).Sub(now.Round(0)))
}

// watch starts the timer that ends the lock at its Deadline, for a lock whose end something waits
// for. The mutex is held.
func (l *lockState) watch() {
	if l.err != nil || l.timer != nil || l.deadline.IsZero() {
		return
	}
	l.timer = time.AfterFunc(l.tick(), l.ticked)
}

func (l *lockState) tick() time.Duration { return min(l.left(), min(max(minTick, l.ttl/8), maxTick)) }

func (l *lockState) ticked() {
	l.mu.Lock()
	if l.forgotten() {
		l.extras().cause = ErrForgotten
	}
	ended := l.expire()
	if l.err == nil && !l.deadline.IsZero() {
		l.timer.Reset(l.tick())
	}
	l.mu.Unlock()
	l.report(ended)
}
