package redigo

import (
	"context"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// shutter shuts connections at the deadlines of calls, with one timer for all calls of a driver.
// The zero shutter is ready to use.
type shutter struct {
	mu      sync.Mutex
	watched map[*watcher]struct{}
	timer   *time.Timer
	alarm   time.Time // when timer fires; zero: it is not set
}

// watcher shuts a connection when ctx ends, or lag after that, so that what reads or writes on it
// returns.
type watcher struct {
	shutter *shutter    // for a deadline alone
	at      time.Time   // when it shuts the connection then
	stop    func() bool // for a ctx that may end before its deadline

	mu   sync.Mutex
	conn redis.Conn // nil once over
}

func (s *shutter) watch(ctx context.Context, conn redis.Conn, lag time.Duration) *watcher {
	w := &watcher{conn: conn}
	if driver.Cancellable(ctx) {
		expire := w.expire
		if lag > 0 {
			expire = func() { time.AfterFunc(lag, w.expire) }
		}
		w.stop = context.AfterFunc(ctx, expire)
	} else if deadline, ok := ctx.Deadline(); ok {
		w.shutter, w.at = s, deadline.Add(lag)
		s.add(w)
	}
	return w
}

func (w *watcher) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		shut(w.conn)
	}
}

// end returns once the connection is the caller's alone.
func (w *watcher) end() {
	if w.shutter != nil && w.shutter.remove(w) || w.stop != nil && w.stop() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = nil
}

func (s *shutter) add(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched == nil {
		s.watched = map[*watcher]struct{}{}
	}
	s.watched[w] = struct{}{}
	s.arm(w.at)
}

// remove reports whether w was there: it has not begun to shut its connection, and never will.
func (s *shutter) remove(w *watcher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.watched[w]
	delete(s.watched, w)
	return ok
}

// arm sets the timer, unless it fires sooner: firing for nothing now and then costs less than
// setting it for each call. mu is held.
func (s *shutter) arm(at time.Time) {
	switch {
	case !s.alarm.IsZero() && !at.Before(s.alarm):
		return
	case s.timer == nil:
		s.timer = time.AfterFunc(time.Until(at), s.tick)
	default:
		s.timer.Reset(time.Until(at))
	}
	s.alarm = at
}

// tick shuts the connections whose time has come.
func (s *shutter) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, next := time.Now(), time.Time{}
	for w := range s.watched {
		switch {
		case !now.Before(w.at):
			delete(s.watched, w)
			go w.expire() // closing a TLS connection may take a while
		case next.IsZero() || w.at.Before(next):
			next = w.at
		}
	}
	s.alarm = time.Time{}
	if !next.IsZero() {
		s.arm(next)
	}
}
