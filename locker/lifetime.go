package locker

import (
	"time"
	"weak"
)

// The timer of a lease's end also fires before the end, to compare the wall clock with the Deadline:
// timers stand still while a machine is suspended, leases do not. minTick and maxTick bound the time
// between.
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

// peek returns the error of Err, but does not end the lock: printing a lock must run no callback.
func (l *lockState) peek() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && l.left() <= 0 {
		return l.expired()
	}
	return l.err
}

// afterDone is a list of callbacks for the end of a lock. nil: none.
type afterDone struct {
	f      func(error)
	signal bool       // f cannot block; it is called before the others, by whoever ends the lock
	next   *afterDone // nil: this is the last one
	prev   *afterDone // the first one's is the last one; nil: removed
}

func (l *lockState) afterDone(entry *afterDone) (stop func() bool) {
	ended := l.lock()
	err := l.err
	if err == nil {
		l.after = l.after.add(entry)
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
	if l.err != nil || entry.prev == nil {
		return false
	}
	l.after = l.after.remove(entry)
	return true
}

// add returns the list with entry at its end.
func (a *afterDone) add(entry *afterDone) *afterDone {
	if a == nil {
		entry.prev = entry
		return entry
	}
	entry.prev = a.prev
	a.prev.next = entry
	a.prev = entry
	return a
}

// remove returns the list without entry.
func (a *afterDone) remove(entry *afterDone) *afterDone {
	before, after := entry.prev, entry.next
	entry.prev, entry.next = nil, nil // a kept stop keeps no other entry
	if entry == a {
		a = after
	} else {
		before.next = after
	}
	switch {
	case after != nil:
		after.prev = before
	case a != nil:
		a.prev = before
	}
	return a
}

// callSignals calls the signals.
func (a *afterDone) callSignals(err error) {
	for ; a != nil; a = a.next {
		if a.signal {
			a.f(err)
		}
	}
}

// callBlocking calls the other callbacks, in order, even if one panics.
func (a *afterDone) callBlocking(err error) {
	if a == nil {
		return
	}
	defer a.next.callBlocking(err)
	if !a.signal {
		a.f(err)
	}
}

// blocks reports whether a callback may block.
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

// lose ends a lost lock, unless it has ended before. It enqueues the reports to the Traces, and then
// the callbacks that may block. If reports are running, unlockAndCall calls these callbacks instead: a
// running report may block. The mutex is held.
func (l *lockState) lose(err error) (ended *afterDone) {
	if l.err != nil {
		return nil
	}
	ended = l.end(err)
	if l.tracing != nil {
		l.enqueueEach(false, func(t *tracing) { t.lost(l, err) })
	}
	if ended.blocks() && !l.reporting() {
		l.enqueue(report{run: func() { ended.callBlocking(err) }})
	}
	return ended
}

// reporting reports whether a goroutine is running reports. The mutex is held.
func (l *lockState) reporting() bool { return l.reports != nil && l.reports.running }

// lock locks the mutex. If the Deadline has passed, it ends the lock and returns the callbacks.
func (l *lockState) lock() (ended *afterDone) {
	l.mu.Lock()
	return l.expire()
}

// expire ends the lock if its Deadline has passed, and returns the callbacks. The mutex is held.
func (l *lockState) expire() (ended *afterDone) {
	if l.err == nil && l.left() <= 0 {
		return l.lose(l.expired())
	}
	return nil
}

// unlock is unlockAndCall with reports in the background.
func (l *lockState) unlock(ended *afterDone) { l.unlockAndCall(ended, true) }

// unlockAndCall unlocks the mutex, and calls the signals in ended. Then it runs the waiting reports, in
// a new goroutine if background is set. If a goroutine is running reports already, it runs these too.
// The callbacks in ended then get a goroutine of their own: the running report may block.
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
// wait for the end or take over the hold. The first call returns false, and begins to observe the
// Lock. The mutex is held.
func (l *lockState) forgotten() bool {
	switch {
	case l.err != nil, l.done != nil, l.handleTaken.Load():
		return false
	case l.after.blocks(): // not those of Context: a ctx in use keeps the Lock reachable
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
	if l.info().Deadline.IsZero() {
		return 1<<63 - 1
	}
	now := time.Now()
	return min(l.info().Deadline.Sub(now), l.info().Deadline.Round(0).Sub(now.Round(0)))
}

// watchDeadline starts the timer, unless it runs: it ends the lock at its Deadline. It is called once
// something waits for the end. The mutex is held.
func (l *lockState) watchDeadline() {
	if l.err != nil || l.timer != nil || l.info().Deadline.IsZero() {
		return
	}
	l.timer = time.AfterFunc(l.tick(), l.ticked)
}

func (l *lockState) tick() time.Duration {
	return min(l.left(), min(max(minTick, l.info().TTL/8), maxTick))
}

func (l *lockState) ticked() {
	l.mu.Lock()
	if l.forgotten() { // before expire: its error gives the cause
		l.cause = ErrForgotten
	}
	ended := l.expire()
	if l.err == nil && !l.info().Deadline.IsZero() {
		l.timer.Reset(l.tick())
	}
	l.unlockAndCall(ended, false)
}
