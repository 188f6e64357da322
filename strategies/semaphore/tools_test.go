package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

const name = "job"

// bench is a server in memory, in fake time, and a Locker on it.
type bench struct {
	*semaphore.Locker
	drv *faultdriver.Driver
	m   *miniredis.Miniredis
}

// run runs f in a bubble, with a semaphore of so many permits.
func run(t *testing.T, permits int, f func(t *testing.T, b bench)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		drv := &faultdriver.Driver{Driver: clients.OpenMemory(t, m), T: t}
		t.Cleanup(drv.WaitLate)
		b := bench{drv: drv, m: m}
		b.Locker = b.with(semaphore.Config{Permits: permits})
		f(t, b)
	})
}

func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // fake time

// with returns another Locker of the same semaphore.
func (b bench) with(cfg semaphore.Config) *semaphore.Locker {
	cfg.AttemptTimeout = time.Second
	return locker.Must(semaphore.New(b.drv, cfg))
}

// take acquires, and fails the test if it is refused.
func take(t *testing.T, l locker.Locker, req locker.Request) *locker.Lock {
	t.Helper()
	req.Name = name
	lock, err := l.Acquire(t.Context(), req)
	if err != nil {
		t.Fatalf("acquire %d permits: %v", req.Permits, err)
	}
	return lock
}

// refused fails the test unless so many permits are refused, and returns the refusal. It leaves no
// waiter.
func refused(t *testing.T, l locker.Locker, permits int) *locker.ContentionError {
	t.Helper()
	lock, err := l.Acquire(t.Context(), locker.Request{Name: name, Permits: permits, NoWait: true})
	held, ok := errors.AsType[*locker.ContentionError](err)
	if !ok || !errors.Is(err, locker.ErrNotAcquired) {
		t.Fatalf("acquire %d permits: %v, %v; want contention", permits, lock, err)
	}
	return held
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
	if b.m.Exists(name) {
		t.Errorf("the key is still there:\n%s", b.m.Dump())
	}
}

func release(t *testing.T, locks ...*locker.Lock) {
	t.Helper()
	for _, lock := range locks {
		match(t, lock.Release(t.Context()))
	}
}

// match fails the test unless err matches all of want; without want, unless err is nil.
func match(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("error %v does not match %v", err, w)
		}
	}
	if len(want) == 0 && err != nil {
		t.Errorf("error %v, want none", err)
	}
}

// process returns a Locker that waits, as a process of its own has it.
func process(l locker.Locker) locker.Locker {
	return locker.Chain(l, locker.Must(retry.New(retry.Config{})))
}

// acquired is what an acquire in the background returned.
type acquired struct {
	lock *locker.Lock
	err  error
}

// wait acquires in the background.
func wait(ctx context.Context, l locker.Locker, req locker.Request) <-chan acquired {
	req.Name = name
	ch := make(chan acquired, 1)
	go func() {
		lock, err := l.Acquire(ctx, req)
		ch <- acquired{lock, err}
	}()
	return ch
}
