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
)

// instant is a time, in nanoseconds after the scheduler's epoch.
type instant int64

const never = instant(math.MaxInt64)

// scheduler knows when each lock is to be renewed. All locks of one Middleware share it, and its one timer.
type scheduler struct {
	cfg   Config
	epoch time.Time

	mu     sync.Mutex
	queue  queue
	timer  *time.Timer // set for the head of the queue, or sooner
	alarm  instant     // when timer fires; never: it is not set
	groups map[groupKey]*group
}

func (s *scheduler) now() instant { return instant(time.Since(s.epoch)) }

// begin watches a lock just acquired.
func (s *scheduler) begin(l *watchedLease) {
	wait := pause(l.lock)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.began = s.now()
	s.next(l, wait)
}

// forget ends the watching. A renewal under way is left to itself.
func (s *scheduler) forget(l *watchedLease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.released = true
	if l.index != away {
		heap.Remove(&s.queue, l.index)
		if len(s.queue) == 0 { // else the timer would keep all this until it fires
			s.timer.Stop()
			s.alarm = never
		}
	}
}

// next plans the renewal that is due after wait, unless a limit is reached. The mutex is held.
func (s *scheduler) next(l *watchedLease, wait time.Duration) {
	if s.cfg.MaxRenewals > 0 && l.renewals >= s.cfg.MaxRenewals {
		l.lock.Hold().ExplainExpiry(ErrMaxRenewals)
		return
	}
	s.plan(l, s.draw(wait))
}

// plan puts l into the queue, for due. The mutex is held.
func (s *scheduler) plan(l *watchedLease, due instant) {
	if s.cfg.MaxHold > 0 && due-l.began > instant(s.cfg.MaxHold) {
		l.lock.Hold().ExplainExpiry(ErrMaxHold)
		return
	}
	l.due = due
	heap.Push(&s.queue, l)
	s.arm()
}

// draw returns the time of a renewal: sooner than after wait by up to the jitter. It is rounded down to a multiple of a
// fraction of the jitter, so that renewals that are due at almost the same moment are due at the same moment.
func (s *scheduler) draw(wait time.Duration) instant {
	from := s.now()
	jitter := int64(float64(wait) * s.cfg.Jitter)
	if jitter < 8 {
		return from + instant(wait)
	}
	grain := int64(1) << (bits.Len64(uint64(jitter)/4) - 1)
	due := int64(from) + int64(wait) - rand.Int64N(jitter-grain+1)
	return instant(due &^ (grain - 1))
}

// arm sets the timer for the head of the queue. One that fires too soon is not put back: it is cheaper to look. The mutex
// is held.
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

// tick hands over what is due.
func (s *scheduler) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alarm = never
	for now := s.now(); len(s.queue) > 0 && s.queue[0].due <= now; {
		l := heap.Pop(&s.queue).(*watchedLease) //nolint:errcheck // there is nothing else in it
		s.hand(l, groupOf(l))
	}
	s.arm()
}

// settle plans what follows a renewal that ended with err.
func (s *scheduler) settle(l *watchedLease, err error) {
	if err != nil {
		explain(l.lock, err)
	}
	if ended(l) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, locker.ErrInvalid) || errors.Is(err, locker.ErrClosed) {
		return
	}
	wait := pause(l.lock)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.released:
	case err == nil:
		if l.fails > 0 {
			l.fails = 0
			l.lock.Hold().ExplainExpiry(nil)
		}
		l.renewals++
		s.next(l, wait)
	default:
		delay := backoff(l.lock.TTL(), l.fails)
		if l.fails++; l.fails > maxFails {
			l.fails -= 2 // odd and even go different ways
		}
		s.plan(l, s.draw(delay))
	}
}

// explain notes why the lease may run out. An error that no time heals, such as NOPERM, is tried again like any other: a
// password that was changed may be changed back, and the lease lasts until its Deadline in any case.
func explain(lock *locker.Lock, err error) {
	if op, ok := errors.AsType[*locker.OpError](err); ok {
		err = op.Err
	}
	by := ""
	if address := lock.Hold().Source().Address; address != "" {
		by = " by " + address
	}
	lock.Hold().ExplainExpiry(fmt.Errorf("it was not renewed%s: %w", by, err))
}

const (
	backoffMin = 50 * time.Millisecond
	backoffMax = time.Second
	maxFails   = 10
)

// backoff is the pause after a renewal that failed, when fails failed before it.
func backoff(ttl time.Duration, fails uint8) time.Duration {
	return min(backoffMin<<fails, backoffMax, ttl/12)
}

// queue is a heap of leases, the one that is due first on top.
type queue []*watchedLease

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	l := x.(*watchedLease) //nolint:errcheck // there is nothing else in it
	l.index = len(*q)
	*q = append(*q, l)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	l := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	l.index = away
	return l
}
