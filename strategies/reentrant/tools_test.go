package reentrant_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

const name = "job"

// bench is a server in memory, in fake time, and a Locker on it.
type bench struct {
	*reentrant.Locker
	drv driver.Driver
	m   *miniredis.Miniredis
}

func run(t *testing.T, f func(t *testing.T, b bench)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		drv := clients.OpenMemory(t, m)
		f(t, bench{locker.Must(reentrant.New(drv, reentrant.Config{AttemptTimeout: time.Second})), drv, m})
	})
}

func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // fake time

// me acquires for the owner "me".
func (b bench) me(t *testing.T, req locker.Request) *locker.Lock {
	t.Helper()
	req.Name, req.Owner = name, "me"
	lock, err := b.Acquire(t.Context(), req)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return lock
}

// refused fails the test unless another owner is refused.
func (b bench) refused(t *testing.T) {
	t.Helper()
	if held := b.refusal(t); held.Owner == "" {
		t.Error("it is not said who holds")
	}
}

// refusal returns the refusal of another owner.
func (b bench) refusal(t *testing.T) *locker.ContentionError {
	t.Helper()
	_, err := b.Acquire(t.Context(), locker.Request{Name: name, Owner: "you"})
	held, ok := errors.AsType[*locker.ContentionError](err)
	if !ok {
		t.Fatalf("acquire by another: %v, want contention", err)
	}
	return held
}

// holds fails the test unless there are that many live holds.
func (b bench) holds(t *testing.T, want int) locker.State {
	t.Helper()
	state, err := b.Inspect(t.Context(), name)
	if err != nil || state.Holds != want || state.Held != (want > 0) {
		t.Errorf("state %+v, %v; want %d holds", state, err, want)
	}
	if last := b.m.HGet(name, "last"); want > 0 && b.m.HGet(name, last) == "" {
		t.Errorf("there is no hold %q, which should be the last to end", last)
	}
	return state
}

// free fails the test if anything is left.
func (b bench) free(t *testing.T) {
	t.Helper()
	b.holds(t, 0)
	if b.m.Exists(name) {
		t.Error("the key is still there")
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

// leaseOf returns the Lease inside lock. It sends commands even after the Lock has ended.
func leaseOf(lock *locker.Lock) (found lease.Lease) {
	lock.Hold().Wrap(func(l lease.Lease) lease.Lease { found = l; return l })
	return found
}
