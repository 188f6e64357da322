// Package locktest has helpers for the tests of several strategies. Only tests import it.
package locktest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// Conformance runs the suite with h over the clients that prove the strategy of that name.
func Conformance(t *testing.T, strategy string, h conformance.Harness) {
	t.Helper()
	for _, client := range clients.Cover(t, strategy) {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			h := h
			h.Name, h.Dial, h.On = strategy+" over "+client.Name, client.Dial, client.On
			conformance.Run(t, h)
		})
	}
}

// Memory starts a server in memory, for a bubble of testing/synctest, and a driver whose commands
// fail by plan.
func Memory(t *testing.T) (*memredis.Server, *faultdriver.Driver) {
	t.Helper()
	m := clients.NewMemory(t)
	drv := &faultdriver.Driver{Driver: clients.OpenMemory(t, m), T: t}
	t.Cleanup(drv.WaitLate)
	return m, drv
}

// Sleep lets fake time pass.
func Sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // fake time

// Release releases held locks.
func Release(t *testing.T, locks ...*locker.Lock) {
	t.Helper()
	for _, lock := range locks {
		check.OK(t, lock.Release(t.Context()))
	}
}

// Refusal returns the *locker.ContentionError in err, and ends the test if there is none.
func Refusal(t *testing.T, err error) *locker.ContentionError {
	t.Helper()
	held, ok := errors.AsType[*locker.ContentionError](err)
	if !ok || !errors.Is(err, locker.ErrNotAcquired) {
		t.Fatalf("error %v, want a refusal", err)
	}
	return held
}

// Holds fails the test unless the lock that a hash keeps has that many live holds, and knows the last
// to end. It returns the lock's State.
func Holds(t *testing.T, l locker.Inspector, m *memredis.Server, name string, want int) locker.State {
	t.Helper()
	state, err := l.Inspect(t.Context(), name)
	if err != nil || state.Holds != want || state.Held != (want > 0) {
		t.Errorf("state %+v, %v; want %d holds", state, err, want)
	}
	if last := m.HGet(name, "last"); want > 0 && m.HGet(name, last) == "" {
		t.Errorf("there is no hold %q, which should be the last to end", last)
	}
	return state
}

// Gone fails the test if a server has a key of that name.
func Gone(t *testing.T, m *memredis.Server, name string) {
	t.Helper()
	if m.Exists(name) {
		t.Errorf("the key is still there:\n%s", m.Dump())
	}
}

// LeaseOf returns the Lease inside lock. It sends commands even after the Lock has ended.
func LeaseOf(lock *locker.Lock) (found lease.Lease) {
	lock.Hold().Wrap(func(l lease.Lease) lease.Lease { found = l; return l })
	return found
}

// BadConfig fails the test unless a strategy's New, called by create, refuses bad settings and
// names the field.
func BadConfig(t *testing.T, strategy string, create func(keylock.Config) error) {
	t.Helper()
	for _, cfg := range []keylock.Config{
		{TTL: -1}, {TTL: time.Millisecond}, {TTL: locker.MaxTTL + 1}, {AttemptTimeout: time.Microsecond},
		{Prefix: strings.Repeat("p", locker.MaxNameLen+1)},
	} {
		err := create(cfg)
		if !errors.Is(err, locker.ErrInvalid) || !strings.Contains(err.Error(), strategy+".Config.") {
			t.Errorf("%+v: error %v; want an ErrInvalid that names the field", cfg, err)
		}
	}
}
