package locker

import (
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
	ended := l.lock()
	defer l.unlock(ended)
	if l.done == nil {
		if l.err != nil {
			l.done = closedChan
		} else {
			l.done = make(chan struct{})
		}
	}
	l.watchDeadline()
	return l.done
}

// Err is Lock.Err.
func (l *lockState) Err() error {
	ended := l.lock()
	defer l.unlock(ended)
	return l.err
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

// afterDone is a callback for the end of a lock, and those behind it. nil: there are none.
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
	ended := l.lock()
	err := l.err
	if err == nil {
		at := &l.after
		for *at != nil {
			at = &(*at).next
		}
		*at = entry
		l.watchDeadline()
	}
	l.unlock(ended)
	if err != nil {
		entry.f(err)
		return func() bool { return false }
	}
	return func() bool { return l.removeAfterDone(entry) }
}

func (l *lockState) removeAfterDone(entry *afterDone) bool {
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

// callSignals calls the callbacks that cannot block.
func (a *afterDone) callSignals(err error) {
	for ; a != nil; a = a.next {
		if a.signal {
			a.f(err)
		}
	}
}

// callBlocking calls the others in order, even if one panics.
func (a *afterDone) callBlocking(err error) {
	if a == nil {
		return
	}
	defer a.next.callBlocking(err)
	if !a.signal {
		a.f(err)
	}
}

// blocks reports whether there are callbacks that may block.
func (a *afterDone) blocks() bool {
	for ; a != nil; a = a.next {
		if !a.signal {
			return true
		}
	}
	return false
}

// end records why the lock is no longer held, and returns the callbacks. The mutex is held.
func (l *lockState) end(err error) (ended *afterDone) {
	l.err = err
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.done != nil {
		close(l.done)
	}
	ended, l.after = l.after, nil
	return ended
}

// lose is end for a lock that is lost, unless it ended before. It enqueues what the Traces are told, and
// then the callbacks that may block, unless these would wait for a report that is running.
func (l *lockState) lose(err error) (ended *afterDone) {
	if l.err != nil {
		return nil
	}
	ended = l.end(err)
	if t := l.tracing; t != nil {
		l.enqueue(report{run: func() { t.allLost(l, err) }})
	}
	if ended.blocks() && !l.reporting() {
		l.enqueue(report{run: func() { ended.callBlocking(err) }})
	}
	return ended
}

// reporting reports whether a goroutine is running reports. The mutex is held.
func (l *lockState) reporting() bool { return l.reports != nil && l.reports.running }

// lock locks the mutex, and ends a lock whose Deadline has passed. It returns the callbacks of that.
func (l *lockState) lock() (ended *afterDone) {
	l.mu.Lock()
	return l.expire()
}

// expire ends a lock whose Deadline has passed. The mutex is held.
func (l *lockState) expire() (ended *afterDone) {
	if l.err == nil && l.left() <= 0 {
		return l.lose(l.expired())
	}
	return nil
}

// unlock unlocks the mutex, and has what unlockAndCall calls called in the background.
func (l *lockState) unlock(ended *afterDone) { l.unlockAndCall(ended, true) }

// unlockAndCall unlocks the mutex, and calls the signals in ended. Then it runs the reports that wait,
// in a goroutine of their own if background is set. If a goroutine is running reports, that one runs
// them; the callbacks in ended do not wait for it, because it may be in a callback that blocks.
func (l *lockState) unlockAndCall(ended *afterDone, background bool) {
	err, busy, starts := l.err, l.reporting(), l.reports != nil && !l.reports.running
	if starts {
		l.reports.running = true
	}
	l.mu.Unlock()
	ended.callSignals(err)
	switch {
	case starts && background:
		go l.runReports()
	case starts:
		l.runReports()
	case busy && ended.blocks():
		go ended.callBlocking(err)
	}
}

// forgotten reports whether the lock is held, the Lock was garbage-collected, and nothing else can
// wait for its end or take the hold over. The first call returns false, and begins to observe the
// Lock. The mutex is held.
func (l *lockState) forgotten() bool {
	switch {
	case l.err != nil, l.done != nil, l.handleTaken.Load():
		return false
	case l.after.blocks(): // those of Context do not; it is in use only as long as the Lock is reachable
		return false
	case l.strong != nil:
		l.weak, l.strong = weak.Make(l.strong), nil
		return false
	default:
		return l.weak.Value() == nil
	}
}

// left returns the time until the Deadline by the monotonic or the wall clock, whichever is less.
func (l *lockState) left() time.Duration {
	if l.deadline.IsZero() {
		return 1<<63 - 1
	}
	now := time.Now()
	return min(l.deadline.Sub(now), l.deadline.Round(0).Sub(now.Round(0)))
}

// watchDeadline starts the timer that ends the lock at its Deadline, for a lock whose end something waits
// for. The mutex is held.
func (l *lockState) watchDeadline() {
	if l.err != nil || l.timer != nil || l.deadline.IsZero() {
		return
	}
	l.timer = time.AfterFunc(l.tick(), l.ticked)
}

func (l *lockState) tick() time.Duration { return min(l.left(), min(max(minTick, l.ttl/8), maxTick)) }

func (l *lockState) ticked() {
	l.mu.Lock()
	if l.forgotten() { // asked first: the error of an expiry says so
		l.extras().cause = ErrForgotten
	}
	ended := l.expire()
	if l.err == nil && !l.deadline.IsZero() {
		l.timer.Reset(l.tick())
	}
	l.unlockAndCall(ended, false)
}
