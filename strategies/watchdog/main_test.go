package watchdog_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

const (
	name = "job"
	ttl  = 30 * time.Second
)

var match = check.Is

// inMemory runs f in fake time, with a Locker in memory and a watchdog around it.
func inMemory(t *testing.T, cfg watchdog.Config, f func(t *testing.T, server *lockertest.Locker, l locker.Locker)) {
	t.Helper()
	check.InFakeTime(t, func(t *testing.T) {
		server := lockertest.New()
		f(t, server, locker.Must(watchdog.New(cfg))(server))
	})
}

// eachInMemory runs f as inMemory does, for each entry of a table.
func eachInMemory[T any](
	t *testing.T, cfg watchdog.Config, tests map[string]T, f func(*testing.T, *lockertest.Locker, locker.Locker, T),
) {
	t.Parallel()
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			inMemory(t, cfg, func(t *testing.T, server *lockertest.Locker, l locker.Locker) { f(t, server, l, tt) })
		})
	}
}

func acquire(t *testing.T, ctx context.Context, l locker.Locker, req locker.Request) *locker.Lock {
	t.Helper()
	req.Name, req.TTL = cmp.Or(req.Name, name), cmp.Or(req.TTL, ttl)
	return locker.Must(l.Acquire(ctx, req))
}

// acquireMany acquires n locks, whose names begin with prefix.
func acquireMany(t *testing.T, ctx context.Context, l locker.Locker, n int, prefix string, ttl time.Duration) []*locker.Lock {
	t.Helper()
	locks := make([]*locker.Lock, n)
	for i := range locks {
		locks[i] = acquire(t, ctx, l, locker.Request{Name: fmt.Sprint(prefix, i), TTL: ttl, Fenced: i%2 == 0})
	}
	return locks
}

// record keeps the times of events, counted from the start.
type record struct {
	start time.Time
	mu    sync.Mutex
	at    []time.Duration
}

func (r *record) note() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Since(r.start))
}

func (r *record) list() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.at)
}

// renewals returns a ctx whose locks report their renewals.
func renewals(t *testing.T) (context.Context, *record) {
	r := &record{start: time.Now()}
	return locktrace.With(t.Context(), &locktrace.Trace{Renewed: func(context.Context, locktrace.RenewedInfo) { r.note() }}), r
}

// release demands that all locks are held, and releases them.
func release(t *testing.T, locks ...*locker.Lock) {
	t.Helper()
	for _, lock := range locks {
		held(t, lock)
		match(t, lock.Release(t.Context()))
	}
}

func held(t *testing.T, lock *locker.Lock) {
	t.Helper()
	check.Must(t, lock.Err())
}

// granting is a Locker without a server: every acquire, renewal and release succeeds.
type granting struct{}

func (granting) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	return grant(ctx, req, granting{}), nil
}

func grant(ctx context.Context, req locker.Request, l lease.Lease) *locker.Lock {
	return locker.NewLock(ctx, lease.HoldInfo{Name: req.Name, Token: "token", TTL: req.TTL, Deadline: time.Now().Add(req.TTL)}, l)
}

func (granting) Do(_ context.Context, op lease.Op) (lease.Result, error) {
	return lease.Result{Deadline: time.Now().Add(op.TTL)}, nil
}
