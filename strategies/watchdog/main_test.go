package watchdog_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

const (
	name = "job"
	ttl  = 30 * time.Second
)

// inMemory runs f in fake time, with a Locker in memory and a watchdog around it.
func inMemory(t *testing.T, cfg watchdog.Config, f func(t *testing.T, server *lockertest.Locker, l locker.Locker)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := lockertest.New()
		f(t, server, locker.Must(watchdog.New(cfg))(server))
	})
}

func acquire(t *testing.T, ctx context.Context, l locker.Locker, req locker.Request) *locker.Lock {
	t.Helper()
	if req.Name == "" {
		req.Name = name
	}
	if req.TTL == 0 {
		req.TTL = ttl
	}
	lock, err := l.Acquire(ctx, req)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return lock
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

func held(t *testing.T, lock *locker.Lock) {
	t.Helper()
	if err := lock.Err(); err != nil {
		t.Fatalf("%q: %v; want it held", lock.Name(), err)
	}
}

func match(t *testing.T, err error, want ...error) {
	t.Helper()
	if len(want) == 0 && err != nil {
		t.Errorf("error %v, want none", err)
	}
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("error %v does not match %v", err, w)
		}
	}
}
