package semaphore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

const name = "job"

var match, release, sleep = check.Is, locktest.Release, locktest.Sleep

// bench is a server in memory, in fake time, and a Locker on it.
type bench struct {
	*semaphore.Locker
	drv *faultdriver.Driver
	m   *memredis.Server
}

// run runs f in a bubble, with a semaphore of this many permits.
func run(t *testing.T, permits int, f func(t *testing.T, b bench)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, drv := locktest.Memory(t)
		b := bench{drv: drv, m: m}
		b.Locker = b.with(semaphore.Config{Permits: permits})
		f(t, b)
	})
}

// with returns another Locker of the same semaphore.
func (b bench) with(cfg semaphore.Config) *semaphore.Locker {
	cfg.AttemptTimeout = time.Second
	return locker.Must(semaphore.New(b.drv, cfg))
}

// take acquires, and fails the test if it is refused.
func take(t *testing.T, l locker.Locker, req locker.Request) *locker.Lock {
	t.Helper()
	req.Name = name
	return locker.Must(l.Acquire(t.Context(), req))
}

// refused fails the test unless so many permits are refused. It leaves no waiter.
func refused(t *testing.T, l locker.Locker, permits int) {
	t.Helper()
	_ = locktest.Refusal(t, check.ErrOf(l.Acquire(t.Context(), locker.Request{Name: name, Permits: permits, NoWait: true})))
}

// state fails the test unless there are so many holds and free permits.
func (b bench) state(t *testing.T, holds, free int) locker.State {
	t.Helper()
	s, err := b.Inspect(t.Context(), name)
	if err != nil || s.Holds != holds || s.Free != free || s.Held != (s.Left > 0) {
		t.Errorf("state %+v, %v; want %d holds, %d free", s, err, holds, free)
	}
	return s
}

// gone fails the test if the key is still there.
func (b bench) gone(t *testing.T) {
	t.Helper()
	locktest.Gone(t, b.m, name)
}

// process returns a Locker that waits, as in a process of its own.
func process(l locker.Locker) locker.Locker {
	return locker.Chain(l, locker.Must(retry.New(retry.Config{})))
}
