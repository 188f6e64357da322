package handover_test

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
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/handover"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

const (
	name = "job"
	ms   = time.Millisecond
)

func elapse(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // in bubbles only

// store is a server in memory: one exclusive lock, with leases, fencing tokens and a log of the
// commands.
type store struct {
	ttl     time.Duration
	latency time.Duration
	fail    func(lease.OpKind) error // runs before an operation is executed, and may prevent it
	mint    func() int64             // the minimum fencing token; nil: 1

	mu    sync.Mutex
	log   []string
	value string // of the holder
	until time.Time
	fence int64
	made  int // values
}

// command logs one command, and lasts for a round trip.
func (s *store) command(what string) {
	elapse(s.latency)
	s.mu.Lock()
	s.log = append(s.log, what)
}

// lose makes the server forget the holder, as a Break does.
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
		return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: &locker.ContentionError{Name: req.Name, Hint: lease.Hint{RetryAfter: s.until.Sub(now)}}}
	}
	s.made++
	s.value, s.until = strconv.Itoa(s.made), now.Add(s.ttl)
	g := lease.HoldInfo{Name: req.Name, Token: s.value, Owner: req.Owner, TTL: s.ttl, Deadline: s.until, Mode: req.Mode}
	if req.Fenced {
		s.fence++
		if s.mint != nil {
			s.fence = max(s.fence, s.mint())
		}
		g.Fence = s.fence
	}
	return locker.NewLock(ctx, g, &stored{s, s.value}), nil
}

// stored is a hold of a store.
type stored struct {
	s     *store
	value string
}

func (h *stored) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if h.s.fail != nil {
		if err := h.s.fail(op.Kind); err != nil {
			return lease.Result{}, err
		}
	}
	if err := ctx.Err(); err != nil && op.Kind != lease.OpRelease {
		return lease.Result{}, err
	}
	h.s.command(op.Kind.String())
	defer h.s.mu.Unlock()
	now := time.Now()
	if h.s.value != h.value || !now.Before(h.s.until) {
		return lease.Result{}, locker.ErrLost
	}
	switch op.Kind {
	case lease.OpRelease:
		h.s.value = ""
	case lease.OpRenew:
		if end := now.Add(op.TTL); end.After(h.s.until) {
			h.s.until = end
		}
	case lease.OpRaiseFence:
		h.s.fence = max(h.s.fence, op.Fence)
		return lease.Result{Deadline: h.s.until, Fence: h.s.fence}, nil
	case lease.OpConvert, lease.OpNote:
	default:
		return lease.Result{}, fmt.Errorf("%v: %w", op.Kind, errors.ErrUnsupported)
	}
	return lease.Result{Deadline: h.s.until}, nil
}

// process is a process with hand-overs, on a store.
type process struct {
	*testing.T
	s *store
	l locker.Locker
}

// inProcess runs f in fake time, over a store with leases of 10 s and tenures of an hour.
func inProcess(t *testing.T, f func(p process)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{ttl: 10 * time.Second}
		f(process{t, s, handingOver(s, time.Hour)})
	})
}

// inProcesses runs f in a process for each entry of a table.
func inProcesses[T any](t *testing.T, tests map[string]T, f func(p process, tt T)) {
	t.Helper()
	t.Parallel()
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) { inProcess(t, func(p process) { f(p, tt) }) })
	}
}

// handingOver puts hand-overs and waiting around l.
func handingOver(l locker.Locker, tenure time.Duration) locker.Locker {
	return locker.Chain(l, locker.Must(handover.New(handover.Config{Tenure: tenure})), locker.Must(retry.New(retry.Config{})))
}

func (p process) acquire(req locker.Request) *locker.Lock {
	p.Helper()
	req.Name = name
	return locker.Must(p.l.Acquire(p.Context(), req))
}

// result is the outcome of an acquire in another goroutine.
type result struct {
	lock     *locker.Lock
	err      error
	done     bool
	panicked any
	woken    []locktrace.WokenInfo
	events   []string // Acquired, Renewed, Released and Lost
}

// wait acquires in another goroutine, and returns once that goroutine waits.
func (p process) wait(ctx context.Context, req locker.Request) *result {
	r := &result{}
	event := func(e string) { r.events = append(r.events, e) }
	ctx = locktrace.With(ctx, &locktrace.Trace{
		Woken:    func(_ context.Context, i locktrace.WokenInfo) { r.woken = append(r.woken, i) },
		Acquired: func(context.Context, locktrace.AcquiredInfo) { event("acquired") },
		Renewed:  func(context.Context, locktrace.RenewedInfo) { event("renewed") },
		Released: func(context.Context, locktrace.ReleasedInfo) { event("released") },
		Lost:     func(context.Context, locktrace.LostInfo) { event("lost") },
	})
	req.Name = name
	go func() {
		defer func() { r.done, r.panicked = true, recover() }()
		r.lock, r.err = p.l.Acquire(ctx, req)
	}()
	synctest.Wait()
	return r
}

// lock returns the lock acquired by wait's goroutine, and fails the test if there is none.
func (p process) lock(r *result) *locker.Lock {
	p.Helper()
	synctest.Wait()
	if !r.done || r.err != nil || r.lock == nil {
		p.Fatalf("Acquire: returned %v, %v; want a lock", r.done, r.err)
	}
	return r.lock
}

// release releases lock, and returns once every goroutine waits.
func (p process) release(lock *locker.Lock) {
	p.Helper()
	check.OK(p.T, lock.Release(p.Context()))
	if err := lock.Err(); err != locker.ErrReleased { //nolint:errorlint // exactly that
		p.Errorf("Err: %v", err)
	}
	synctest.Wait()
}

// sent checks the commands sent since the last call.
func (p process) sent(want ...string) {
	p.Helper()
	synctest.Wait()
	p.s.mu.Lock()
	log := p.s.log
	p.s.log = nil
	p.s.mu.Unlock()
	check.EqualSlices(p.T, "commands", log, want)
}

// handedOver reports whether r received its lock by a hand-over.
func (r *result) handedOver() bool {
	return len(r.woken) > 0 && r.woken[len(r.woken)-1].By == locktrace.ByHandOver
}
