package reentrant_test

import (
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
	return locker.Must(b.Acquire(t.Context(), req))
}

// refusal returns the refusal of another owner.
func (b bench) refusal(t *testing.T) *locker.ContentionError {
	t.Helper()
	held := locktest.Refusal(t, check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name, Owner: "you"})))
	check.Equal(t, "the refusal names no owner", held.Owner == "", false)
	return held
}

// holds fails the test unless there are want live holds.
func (b bench) holds(t *testing.T, want int) locker.State {
	t.Helper()
	return locktest.Holds(t, b, b.m, name, want)
}

// free fails the test if anything is left.
func (b bench) free(t *testing.T) {
	t.Helper()
	b.holds(t, 0)
	locktest.Gone(t, b.m, name)
}
