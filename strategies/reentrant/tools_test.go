package reentrant_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

const name = "job"

var match, release, sleep = check.Is, locktest.Release, locktest.Sleep

// bench is a server in memory, in fake time, and a Locker on it.
type bench struct {
	*reentrant.Locker
	drv driver.Driver
	m   *memredis.Server
}

func run(t *testing.T, f func(t *testing.T, b bench)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, drv := locktest.Memory(t)
		f(t, bench{locker.Must(reentrant.New(drv, reentrant.Config{AttemptTimeout: time.Second})), drv, m})
	})
}

// me acquires for the owner "me".
func (b bench) me(t *testing.T, req locker.Request) *locker.Lock {
	t.Helper()
	req.Name, req.Owner = name, "me"
	lock := locker.Must(b.Acquire(t.Context(), req))
	return lock
}

// refusal returns the refusal of another owner.
func (b bench) refusal(t *testing.T) *locker.ContentionError {
	t.Helper()
	_, err := b.Acquire(t.Context(), locker.Request{Name: name, Owner: "you"})
	held, ok := errors.AsType[*locker.ContentionError](err)
	if !ok || held.Owner == "" {
		t.Fatalf("acquire by another: %v, want contention with an owner", err)
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
