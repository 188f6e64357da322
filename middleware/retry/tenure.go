package retry

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

const (
	// tenurePoll is how often the first waiter asks the server while a request of this process
	// holds the lock and no hand-over happens.
	tenurePoll = time.Second
)

// terms are what a request asks of its lease.
type terms struct {
	ttl     time.Duration // zero: the strategy's default
	minHold time.Duration
	fenced  bool
}

func termsOf(req locker.Request) terms { return terms{req.TTL, req.MinHold, req.Fenced} }

// serve reports whether a hold acquired under t serves a request with the terms w. One with a
// minimum hold needs a lease that lasts so long from its own acquire.
func (t terms) serve(w terms) bool {
	return t.ttl == w.ttl && w.minHold == 0 && (t.fenced || !w.fenced)
}

// tenure is the time for which this process holds a name at the server: from an acquire, through
// hand-overs, to the release that is sent. The current holder owns fence and reserved; the mutex of
// queues guards the rest.
type tenure struct {
	lease lease.Transferable
	terms terms
	note  string    // as the server knows it: of the first request
	until time.Time // no hand-over after it

	lock     lease.Hold              // the one that holds, or held last
	refusal  *locker.ContentionError // for waiters
	latest   time.Time               // when lock was acquired or handed over
	overtime bool                    // it ends because until has passed, though others of this process wait

	fence    int64 // the latest token
	reserved int64 // the last token of the block

	inheritance inheritance // its latest hand-over
}

// newTenure returns the tenure that begins with lock, or nil if it cannot be handed over. Errors:
// ErrInvalid if a wrapper, which acts for one Lock, is around the strategy's lease.
func (r *retrier) newTenure(lock *locker.Lock, inner lease.Lease, req locker.Request) (*tenure, error) {
	if r.cfg.HandOver <= 0 || req.MinHold > 0 || req.Mode != locker.Exclusive || !req.Resume.IsZero() {
		return nil, nil
	}
	l, ok := lease.Find[lease.Transferable](inner)
	if !ok {
		return nil, nil
	}
	if lease.Lease(l) != inner {
		return nil, driver.Invalid("retry.Config.HandOver", fmt.Sprintf("%v around a %T", r.cfg.HandOver, inner),
			"0, or retry inside middleware that wraps leases, as in holdfast.New")
	}
	if _, ok = l.Transfer(); !ok { // as of an owner
		return nil, nil
	}
	now, fence := time.Now(), lock.Fence()
	return &tenure{
		lease: l, terms: termsOf(req), note: req.Note, until: now.Add(r.cfg.HandOver), lock: lock.Hold(), latest: now,
		fence: fence, reserved: fence,
		refusal: &locker.ContentionError{Name: req.Name, Note: req.Note},
	}, nil
}

// outcome returns what waiters know while t lasts.
func (t *tenure) outcome(now time.Time) outcome {
	return outcome{held: t.refusal, here: t.lock, at: now}
}

// nameHolder returns o with the holder of now where the server named the tenure's first one. mu is
// held.
func (q *queue) nameHolder(o outcome) outcome {
	t := q.tenure
	if t == nil || o.held == nil || o.held.Owner != "" || o.held.Note != t.note || t.lost(o.at) {
		return o
	}
	held := *o.held
	held.Note = t.refusal.Note
	o.held, o.here = &held, t.lock
	return o
}

// begin records that t begins with an acquire of name, or, if it is nil, that the one before is
// over: the server granted the lock to somebody else. mu is held.
func (qs *queues) begin(name string, t *tenure) {
	if t == nil {
		qs.end(name, qs.tenures[name])
		return
	}
	if len(qs.tenures) >= qs.sweepAt {
		qs.sweep(time.Now())
	}
	qs.tenures[name] = t
	if q := qs.byName[name]; q != nil {
		q.tenure = t
	}
}

// joinTenure gives a new queue the tenure of its name, if there is one. mu is held.
func (qs *queues) joinTenure(q *queue) {
	t := qs.tenures[q.name]
	if t == nil {
		return
	}
	if now := time.Now(); t.lost(now) {
		qs.end(q.name, t)
	} else {
		q.tenure, q.known = t, t.outcome(now)
	}
}

// lost reports whether t's latest Lock was lost: the holder's or, during a hand-over, the one
// before.
func (t *tenure) lost(now time.Time) bool {
	err, end := t.lock.Err(), t.lock.Deadline()
	return err != nil && err != locker.ErrReleased || !end.IsZero() && !now.Before(end) //nolint:errorlint // set by Release itself
}

// sweep forgets the tenures whose lease ran out and whose Lock was never released. The amortized
// cost for each is constant.
func (qs *queues) sweep(now time.Time) {
	for name, t := range qs.tenures {
		if t.lost(now) {
			qs.end(name, t)
		}
	}
	qs.sweepAt = 2*len(qs.tenures) + 64
}

// end forgets t. The look that a leader relies on goes on. mu is held.
func (qs *queues) end(name string, t *tenure) {
	if t == nil || qs.tenures[name] != t {
		return
	}
	delete(qs.tenures, name)
	if q := qs.byName[name]; q != nil {
		q.tenure = nil
	}
}

// startLook starts the timer after which a leader asks the server about the tenure, unless it runs.
// mu is held.
func (q *queue) startLook() {
	if q.timer == nil {
		now := time.Now()
		q.startTimer(q.tenure.lookAt(now).Sub(now))
	}
}

// startTimer starts the timer that wakes the leaders, unless it runs: to ask the server about a
// tenure without hand-overs, or to try once they have yielded. mu is held.
func (q *queue) startTimer(after time.Duration) {
	if q.timer == nil {
		q.timer = time.AfterFunc(after, q.onTimer)
	}
}

func (q *queue) onTimer() {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if q.timer == nil {
		return // it was stopped
	}
	q.timer = nil
	now := time.Now()
	switch t := q.tenure; {
	case now.Before(q.notBefore):
		q.startTimer(q.notBefore.Sub(now))
	case t == nil && q.known.here != nil:
		q.endTurn()
	case t == nil:
		q.wakeLeaders(locktrace.ByRelease)
	case now.Before(t.lookAt(t.latest)):
		q.startTimer(t.lookAt(t.latest).Sub(now))
	default:
		q.wakeLeaders(locktrace.ByBackoff)
	}
}

// lookAt returns when a leader asks the server about t if nothing happens from now on: in a while,
// or at the end of the lease.
func (t *tenure) lookAt(now time.Time) time.Time {
	at := now.Add(tenurePoll)
	if end := t.lock.Deadline(); !end.IsZero() && end.Before(at) {
		return end
	}
	return at
}

func (q *queue) stopTimer() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// pollTimes returns the bounds of when a leader asks the server though nothing wakes it. It polls
// at rarely at the earliest, which is later in a tenure. It sends nothing before notBefore, while
// it yields, even if the lease ends.
func (w *waiter) pollTimes(now time.Time) (rarely, notBefore time.Time) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	rarely = now
	if q.inTurn(w, now) {
		rarely = q.turn.slackEnd()
	}
	if t := q.tenure; t != nil && !t.lost(now) {
		rarely = t.lookAt(now)
	}
	return rarely, q.notBefore
}
