package retry_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// store is a server in memory whose holds can be transferred: one lock, exclusive, with leases and
// fencing tokens.
type store struct {
	ttl     time.Duration
	latency time.Duration
	endless bool                     // grants name no Deadline
	fail    func(lease.OpKind) error // comes before an operation is executed; nil: it is

	mu    sync.Mutex
	log   []string // the commands
	value string   // of the holder
	until time.Time
	fence int64
	made  int // values
}

// command logs one command. It takes the time of a round trip.
func (s *store) command(what string) {
	elapse(s.latency)
	s.mu.Lock()
	s.log = append(s.log, what)
}

// commands returns the commands since the last call.
func (s *store) commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	return log
}

// lose makes the server lose its data.
func (s *store) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value = ""
}

func (s *store) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	s.command("acquire")
	defer s.mu.Unlock()
	now := time.Now()
	if s.value != "" && now.Before(s.until) {
		return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: &locker.ContentionError{Name: req.Name, RetryAfter: s.until.Sub(now)}}
	}
	s.made++
	s.value, s.until = strconv.Itoa(s.made), now.Add(s.ttl)
	h := &stored{s: s, value: s.value, owned: req.Owner != "", until: s.until}
	g := lease.Grant{Name: req.Name, Token: s.value, Owner: req.Owner, TTL: s.ttl, Deadline: s.until, Mode: req.Mode}
	if s.endless {
		g.Deadline = time.Time{}
	}
	if req.Fenced {
		s.fence++
		g.Fence = s.fence
	}
	return locker.NewLock(ctx, g, h), nil
}

// stored is a hold of a store.
type stored struct {
	s     *store
	value string
	owned bool

	mu    sync.Mutex
	until time.Time
}

func (h *stored) Transfer() (lease.Grant, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := lease.Grant{Name: name, Token: h.value, TTL: h.s.ttl, Deadline: h.until}
	if h.s.endless {
		g.Deadline = time.Time{}
	}
	return g, !h.owned
}

func (h *stored) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	if h.s.fail != nil {
		if err := h.s.fail(op.Kind); err != nil {
			return lease.Term{}, err
		}
	}
	if err := ctx.Err(); err != nil && op.Kind != lease.OpRelease {
		return lease.Term{}, err
	}
	h.s.command(op.Kind.String())
	defer h.s.mu.Unlock()
	now := time.Now()
	if h.s.value != h.value || !now.Before(h.s.until) {
		return lease.Term{}, locker.ErrLost
	}
	switch op.Kind {
	case lease.OpRelease:
		h.s.value = ""
	case lease.OpRenew:
		h.s.until = now.Add(op.TTL)
		h.mu.Lock()
		h.until = h.s.until
		h.mu.Unlock()
		return lease.Term{Deadline: h.s.until}, nil
	case lease.OpRaiseFence:
		h.s.fence = max(h.s.fence, op.Fence)
		return lease.Term{Deadline: h.s.until, Fence: h.s.fence}, nil
	default:
		return lease.Term{}, fmt.Errorf("%v: %w", op.Kind, errors.ErrUnsupported)
	}
	return lease.Term{}, nil
}

// cohort is a process: a retry with hand-over around a store.
type cohort struct {
	*testing.T
	s *store
	l locker.Locker
}

// inCohort runs f in fake time, over a store with leases of 10 s and hand-overs for an hour.
func inCohort(t *testing.T, f func(t *testing.T, c cohort)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{ttl: 10 * time.Second}
		f(t, cohort{t, s, wrap(t, s, retry.Config{HandOver: time.Hour})})
	})
}

// cohorts runs f in a cohort for each entry of a table.
func cohorts[T any](t *testing.T, tests map[string]T, f func(t *testing.T, c cohort, tt T)) {
	t.Helper()
	t.Parallel()
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) { inCohort(t, func(t *testing.T, c cohort) { f(t, c, tt) }) })
	}
}

// acquire acquires at once.
func (c cohort) acquire(req locker.Request) *locker.Lock {
	c.Helper()
	req.Name = name
	lock := locker.Must(c.l.Acquire(c.Context(), req))
	return lock
}

// wait acquires in another goroutine, and returns once that waits.
func (c cohort) wait(ctx context.Context, req locker.Request) *result {
	return newServer().begin(ctx, c.l, req)
}

// lock returns what wait came to, which must be a lock.
func (c cohort) lock(r *result) *locker.Lock {
	c.Helper()
	synctest.Wait()
	if !r.done || r.err != nil {
		c.Fatalf("Acquire: returned %v, %v; want a lock", r.done, r.err)
	}
	return r.lock
}

// release releases lock, and returns once nothing moves any more.
func (c cohort) release(lock *locker.Lock) {
	c.Helper()
	check.OK(c.T, lock.Release(c.Context()))
	if err := lock.Err(); err != locker.ErrReleased { //nolint:errorlint // exactly that
		c.Errorf("Err: %v", err)
	}
	synctest.Wait()
}

// sent checks which commands were sent since the last time.
func (c cohort) sent(want ...string) {
	c.Helper()
	equal(c.T, "commands", c.s.commands(), want)
}
