package watchdog

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// instant is a time, in nanoseconds after the scheduler's epoch.
type instant int64

const never = instant(math.MaxInt64)

// scheduler plans when each lock is renewed. All locks of one Middleware share it, and its one
// timer.
type scheduler struct {
	cfg   Config
	epoch time.Time

	mu     sync.Mutex
	queue  queue
	timer  *time.Timer // set for the head of the queue, or sooner
	alarm  instant     // when timer fires; never: it is not set
	groups map[groupKey]*group
}

func (s *scheduler) now() instant { return s.at(time.Now()) }

func (s *scheduler) at(t time.Time) instant { return instant(t.Sub(s.epoch)) }

// add plans the renewals of a new lock.
func (s *scheduler) add(l *watchedLease) {
	now := time.Now()
	wait := untilRenewal(l.lock, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	began := s.at(now)
	if s.cfg.MaxHold > 0 || s.cfg.MaxRenewals > 0 {
		l.limited = &limited{began: began}
	}
	s.planRenewal(l, began, wait)
}

// remove plans no more renewals of l. One in flight is left to itself.
func (s *scheduler) remove(l *watchedLease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.released = true
	if l.index != notQueued {
		heap.Remove(&s.queue, int(l.index))
		if len(s.queue) == 0 { // else the timer would keep all this until it fires
			s.timer.Stop()
			s.alarm = never
		}
	}
}

// planRenewal plans the renewal due after wait from now, unless MaxRenewals is reached. The mutex
// is held.
func (s *scheduler) planRenewal(l *watchedLease, now instant, wait time.Duration) {
	if s.cfg.MaxRenewals > 0 && l.limited.renewals >= s.cfg.MaxRenewals {
		l.lock.ExplainExpiry(ErrMaxRenewals)
		return
	}
	s.schedule(l, s.jittered(now, wait))
}

// schedule puts l into the queue, unless MaxHold is over by then. The mutex is held.
func (s *scheduler) schedule(l *watchedLease, due instant) {
	if s.cfg.MaxHold > 0 && due-l.limited.began > instant(s.cfg.MaxHold) {
		l.lock.ExplainExpiry(ErrMaxHold)
		return
	}
	l.due = due
	heap.Push(&s.queue, l)
	s.arm()
}

// jittered returns the time of a renewal: after wait from now, less a random part of it up to
// Config.Jitter. It is rounded down to a multiple of a fraction of the jitter: renewals due at
// almost the same time become due together, and travel together.
func (s *scheduler) jittered(now instant, wait time.Duration) instant {
	jitter := int64(float64(wait) * s.cfg.Jitter)
	if jitter < 8 {
		return now + instant(wait)
	}
	grain := int64(1) << (bits.Len64(uint64(jitter)/4) - 1)
	due := int64(now) + int64(wait) - rand.Int64N(jitter-grain+1)
	return instant(due &^ (grain - 1))
}

// arm sets the timer for the head of the queue. A timer that would fire too soon is left as it is:
// a look costs less than a reset. The mutex is held.
func (s *scheduler) arm() {
	if len(s.queue) == 0 {
		return
	}
	due := s.queue[0].due
	switch {
	case s.timer == nil:
		s.timer = time.AfterFunc(time.Duration(due-s.now()), s.tick)
	case due < s.alarm:
		s.timer.Reset(time.Duration(due - s.now()))
	default:
		return
	}
	s.alarm = due
}

// tick begins the due renewals. Workers start last: they need the mutex.
func (s *scheduler) tick() {
	due := s.takeDue()
	keys := make([]groupKey, len(due))
	for i, l := range due {
		keys[i] = keyOf(l)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range due {
		s.enqueue(l, keys[i])
	}
	for _, g := range s.groups {
		s.startWorkers(g)
	}
}

// takeDue takes the due leases out of the queue.
func (s *scheduler) takeDue() (due []*watchedLease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alarm = never
	for now := s.now(); len(s.queue) > 0 && s.queue[0].due <= now; {
		due = append(due, heap.Pop(&s.queue).(*watchedLease)) //nolint:errcheck // there is nothing else in it
	}
	s.arm()
	return due
}

// planAfter plans the next renewal after one that ended with err.
func (s *scheduler) planAfter(l *watchedLease, err error) {
	if err != nil {
		explain(l.lock, err)
	}
	if ended(l) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, locker.ErrInvalid) ||
		errors.Is(err, locker.ErrClosed) {
		return
	}
	now := time.Now()
	wait := untilRenewal(l.lock, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.released:
	case err == nil:
		if l.fails > 0 {
			l.fails = 0
			l.lock.ExplainExpiry(nil)
		}
		if l.limited != nil {
			l.limited.renewals++
		}
		s.planRenewal(l, s.at(now), wait)
	default:
		delay := backoff(l.lock.TTL(), l.fails)
		l.fails = min(l.fails+1, maxFails)
		s.schedule(l, s.jittered(s.at(now), delay))
	}
}

// explain records why the lease may run out. A renewal is repeated also after a permanent error such
// as NOPERM: a permission may come back, and the lease lasts until its Deadline.
func explain(lock lease.Hold, err error) {
	if op, ok := errors.AsType[*locker.OpError](err); ok {
		err = op.Err
	}
	by := ""
	if address := lock.Source().Address; address != "" {
		by = " by " + address
	}
	lock.ExplainExpiry(fmt.Errorf("it was not renewed%s: %w", by, err))
}

const (
	backoffMin = 50 * time.Millisecond
	backoffMax = time.Second
	maxFails   = 10
)

// backoff returns the pause after a failed renewal; fails failed before it.
func backoff(ttl time.Duration, fails uint8) time.Duration {
	return min(backoffMin<<fails, backoffMax, ttl/12)
}

// queue is a heap of leases, with the earliest due on top.
type queue []*watchedLease

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = int32(i), int32(j) //nolint:gosec // memory ends long before
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	l := x.(*watchedLease)   //nolint:errcheck // there is nothing else in it
	l.index = int32(len(*q)) //nolint:gosec // memory ends long before
	*q = append(*q, l)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	l := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	l.index = notQueued
	return l
}
