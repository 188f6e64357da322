package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

const (
	name   = "job"
	holder = "w7" // the owner in refusals
)

// server is a Locker in memory, the driver of its channels, and a record of the requests. Its refusals
// report the end of a lease, but it ends none.
type server struct {
	driver.Driver // nil: only the channels are implemented

	start     time.Time
	noPubSub  bool                                        // refusals name no channel
	ordered   bool                                        // it orders the modes; set before it is wrapped
	reenters  bool                                        // an owner does not exclude itself
	mute      bool                                        // releases are not published
	unnamed   bool                                        // refusals name no owner
	queue     bool                                        // refusals have Queue; releases may serve their process
	fair      bool                                        // refusals have Fair
	result    lease.Result                                // of releases
	foreign   bool                                        // refusals have Foreign
	lease     time.Duration                               // RetryAfter of refusals
	jitter    time.Duration                               // Jitter of refusals
	latency   time.Duration                               // of an attempt
	answer    func(attempt int, req locker.Request) error // runs before the lock is checked; nil: the lock decides
	refused   time.Duration                               // how long a refusal is under way
	releasing func()                                      // runs in a release, before it is executed
	answering func() error                                // runs in a release, after it is executed
	ask       func(ctx context.Context, asking int) error // runs in Subscribe

	mu       sync.Mutex
	held     map[string]map[*hold]bool
	attempts []attempt
	inFlight map[string]int
	most     map[string]int // most attempts in flight at once, by name
	asked    []time.Duration
	subs     map[*subscription]bool
	released int
	releases []lease.Op
	waiting  []lease.Waiting // of the attempts
}

// attempt is one acquire that reached the server.
type attempt struct {
	at    time.Duration // after start
	name  string
	note  string
	maxed time.Duration // Request.MaxWait as it arrived
	once  bool          // Request.NoWait as it arrived
}

func newServer() *server {
	return &server{
		start: time.Now(), held: map[string]map[*hold]bool{}, inFlight: map[string]int{}, most: map[string]int{},
		subs: map[*subscription]bool{},
	}
}

type hold struct {
	s    *server
	name string
	mode locker.Mode
	note string

	owner string
}

var errHint = errors.New("one attempt was made, middleware/retry waits")

func (s *server) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := s.acquire(ctx, req)
	if err != nil {
		return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: err}
	}
	return lock, nil
}

func (s *server) acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	s.mu.Lock()
	n := len(s.attempts)
	s.attempts = append(s.attempts, attempt{time.Since(s.start), req.Name, req.Note, req.MaxWait, req.NoWait})
	waiting, _ := lease.WaitingFrom(ctx)
	s.waiting = append(s.waiting, waiting)
	s.inFlight[req.Name]++
	s.most[req.Name] = max(s.most[req.Name], s.inFlight[req.Name])
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.inFlight[req.Name]--
		s.mu.Unlock()
	}()
	if s.latency > 0 {
		select {
		case <-time.After(s.latency):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
		}
	}
	if s.answer != nil {
		if err := s.answer(n, req); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.held[req.Name] {
		if (h.mode == locker.Exclusive || req.Mode == locker.Exclusive) && (!s.reenters || h.owner != req.Owner) {
			s.mu.Unlock()
			elapse(s.refused)
			s.mu.Lock()
			return nil, s.refusal(h)
		}
	}
	h := &hold{s, req.Name, req.Mode, req.Note, req.Owner}
	if s.held[req.Name] == nil {
		s.held[req.Name] = map[*hold]bool{}
	}
	s.held[req.Name][h] = true
	return locker.NewLock(ctx, lease.HoldInfo{Name: req.Name, Token: "t", Owner: req.Owner, Mode: req.Mode, TTL: time.Hour}, h), nil
}

func (s *server) Traits() lease.Traits { return lease.Traits{Ordered: s.ordered} }

// ordering is a Locker that orders the modes.
type ordering struct{ locker.Locker }

func (ordering) Traits() lease.Traits { return lease.Traits{Ordered: true} }

func (s *server) refusal(h *hold) error {
	held := &locker.ContentionError{Name: h.name, Owner: holder, Note: h.note, Left: s.lease, Hint: lease.Hint{RetryAfter: s.lease, Jitter: s.jitter}}
	held.Queue, held.Fair, held.Foreign = s.queue, s.fair, s.foreign
	if s.unnamed {
		held.Owner = ""
	}
	if !s.noPubSub {
		held.Channel = driver.NewChannel(s, h.name+":wake")
	}
	return fmt.Errorf("%w; %w", held, errHint)
}

func (h *hold) Do(_ context.Context, op lease.Op) (lease.Result, error) {
	switch op.Kind {
	case lease.OpRelease:
		if h.s.releasing != nil {
			h.s.releasing()
		}
		h.s.mu.Lock()
		h.s.releases = append(h.s.releases, op)
		h.s.mu.Unlock()
		h.s.free(h)
		if h.s.answering != nil {
			return h.s.result, h.s.answering()
		}
		return h.s.result, nil
	case lease.OpRenew:
		return lease.Result{Deadline: time.Now().Add(op.TTL), Fence: 7}, nil
	default:
		return lease.Result{}, fmt.Errorf("%v: %w", op.Kind, errors.ErrUnsupported)
	}
}

func (s *server) free(h *hold) {
	s.mu.Lock()
	delete(s.held[h.name], h)
	s.released++
	s.mu.Unlock()
	if !s.mute {
		s.publish(h.name + ":wake")
	}
}

// lose makes the server forget the holder.
func (s *server) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.held[name])
}

// hold acquires the lock for another process: only the server tells waiters of its release.
func (s *server) hold() *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &hold{s, name, locker.Exclusive, "nightly", ""}
	if s.held[name] == nil {
		s.held[name] = map[*hold]bool{}
	}
	s.held[name][h] = true
	return h
}

func (s *server) publish(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.subs {
		if sub.channel == channel || strings.HasPrefix(sub.channel, channel+":") {
			select {
			case sub.wake <- struct{}{}:
			default:
			}
		}
	}
}

// waits returns the lease.Waiting of each attempt, in order.
func (s *server) waits() []lease.Waiting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.waiting)
}

// times returns the times of the attempts, in order.
func (s *server) times() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []time.Duration{}
	for _, a := range s.attempts {
		out = append(out, a.at)
	}
	return out
}

func (s *server) notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []string{}
	for _, a := range s.attempts {
		out = append(out, a.note)
	}
	return out
}

func (s *server) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.subs)
}

func (s *server) askings() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// constant returns a policy of equal pauses.
func constant(d time.Duration) func() backoff.BackOff {
	return func() backoff.BackOff { return backoff.NewConstantBackOff(d) }
}

// tries returns the classic policy: n attempts after the first, with a constant pause between them.
func tries(d time.Duration, n uint64) func() backoff.BackOff {
	return func() backoff.BackOff { return backoff.WithMaxRetries(backoff.NewConstantBackOff(d), n) }
}

// elapse lets fake time pass.
func elapse(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // in bubbles only

// bubble runs f in fake time.
func bubble(t *testing.T, f func(t *testing.T, s *server)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		f(t, s)
		if s.queue {
			elapse(time.Second) // a subscription is kept for so long
		}
		synctest.Wait()
		check.Equal(t, "subscriptions left", s.open(), 0)
	})
}

// bubbles runs f in fake time for each entry of a table.
func bubbles[T any](t *testing.T, tests map[string]T, f func(t *testing.T, s *server, tt T)) {
	t.Helper()
	t.Parallel()
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) { bubble(t, func(t *testing.T, s *server) { f(t, s, tt) }) })
	}
}

func wrap(t *testing.T, l locker.Locker, cfg retry.Config) locker.Locker {
	t.Helper()
	return locker.Must(retry.New(cfg))(l)
}

// result is the outcome of an Acquire in another goroutine.
type result struct {
	lock *locker.Lock
	err  error
	at   time.Duration
	done bool
}

// begin acquires in another goroutine and returns once that goroutine waits. The result may be read
// after synctest.Wait.
func (s *server) begin(ctx context.Context, l locker.Locker, req locker.Request) *result {
	r := &result{}
	if req.Name == "" {
		req.Name = name
	}
	go func() {
		lock, err := l.Acquire(ctx, req)
		*r = result{lock, err, time.Since(s.start), true}
	}()
	synctest.Wait()
	return r
}

func (r *result) wantLock(t *testing.T, at time.Duration) {
	t.Helper()
	synctest.Wait()
	switch {
	case !r.done:
		t.Errorf("Acquire has not returned")
	case r.err != nil:
		t.Errorf("Acquire: %v", r.err)
	case r.at != at:
		t.Errorf("acquired after %v, want %v", r.at, at)
	}
}

// mustLock ends the test unless Acquire has returned a lock.
func (r *result) mustLock(t *testing.T) {
	t.Helper()
	if r.lock == nil {
		t.Fatalf("Acquire: returned %v, %v; want a lock", r.done, r.err)
	}
}

func (r *result) wantError(t *testing.T, at time.Duration, want ...error) {
	t.Helper()
	synctest.Wait()
	if !r.done || r.lock != nil {
		t.Fatalf("Acquire: returned %v, lock %v; want an error", r.done, r.lock)
	}
	check.Equal(t, "gave up after", r.at, at)
	match(t, r.err, want, nil)
}

// match demands that err matches all of want, and none of wantNot.
func match(t *testing.T, err error, want, wantNot []error) {
	t.Helper()
	if len(want) > 0 {
		check.Is(t, err, want...)
	}
	check.IsNot(t, err, wantNot...)
}
