package keylock_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/keylock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// settings are the fields that every strategy's Config has.
type settings struct {
	attempt, within time.Duration
	replicas        int
}

// strategies are those made with keylock, including the Example's.
var strategies = []struct {
	name string
	new  func(driver.Driver, settings) (locker.Locker, error)
}{
	{"single", func(d driver.Driver, s settings) (locker.Locker, error) {
		return single.New(d, single.Config{AttemptTimeout: s.attempt, MinReplicas: s.replicas, ReplicaTimeout: s.within})
	}},
	{"reentrant", func(d driver.Driver, s settings) (locker.Locker, error) {
		return reentrant.New(d, reentrant.Config{AttemptTimeout: s.attempt, MinReplicas: s.replicas, ReplicaTimeout: s.within})
	}},
	{"rwhash", func(d driver.Driver, s settings) (locker.Locker, error) {
		return rwhash.New(d, rwhash.Config{AttemptTimeout: s.attempt, MinReplicas: s.replicas, ReplicaTimeout: s.within})
	}},
	{"exclusive", func(d driver.Driver, s settings) (locker.Locker, error) {
		return newExclusive(d, keylock.Config{AttemptTimeout: s.attempt, MinReplicas: s.replicas, ReplicaTimeout: s.within})
	}},
	{"semaphore", func(d driver.Driver, s settings) (locker.Locker, error) {
		return semaphore.New(d, semaphore.Config{Permits: 1, AttemptTimeout: s.attempt, MinReplicas: s.replicas, ReplicaTimeout: s.within})
	}},
}

type opener = func(driver.Driver) (locker.Locker, error)

// fairLocks are the strategies with a strict order of waiters.
var fairLocks = map[string]opener{
	"single":    func(d driver.Driver) (locker.Locker, error) { return single.New(d, single.Config{Fair: true}) },
	"reentrant": func(d driver.Driver) (locker.Locker, error) { return reentrant.New(d, reentrant.Config{Fair: true}) },
	"semaphore": func(d driver.Driver) (locker.Locker, error) { return semaphore.New(d, semaphore.Config{Permits: 1}) },
}

const name = "job"

var wantNone, wantIs, leaseOf, sleep = check.OK, check.Is, locktest.LeaseOf, locktest.Sleep

// bench is a server in memory, in the test's time, and a Locker on it that wants one replica. Its
// replicas may be frozen: WAIT then counts them for a script without a write, and for no other.
type bench struct {
	locker.Locker
	drv    *faultdriver.Driver
	new    func(driver.Driver, settings) (locker.Locker, error) // of its strategy
	m      *memredis.Server
	frozen atomic.Bool
}

// eachStrategy runs f for each strategy, in fake time.
func eachStrategy(t *testing.T, s settings, f func(t *testing.T, b *bench)) {
	t.Parallel()
	for _, strategy := range strategies {
		t.Run(strategy.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.new, b.Locker = strategy.new, locker.Must(strategy.new(b.drv, s))
				f(t, b)
			})
		})
	}
}

// eachCase runs f for each entry of a table and each strategy, in fake time.
func eachCase[T any](t *testing.T, s settings, tests map[string]T, f func(t *testing.T, b *bench, tt T)) {
	t.Parallel()
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			eachStrategy(t, s, func(t *testing.T, b *bench) { f(t, b, tt) })
		})
	}
}

func newBench(t *testing.T) *bench {
	t.Helper()
	m := clients.NewMemory(t)
	b := &bench{m: m}
	b.drv = &faultdriver.Driver{Driver: clients.OpenMemory(t, m), T: t, Acks: func(r driver.Reply) int {
		const earlier = 2 // an earlier send did it
		if status, err := r.Int(0); b.frozen.Load() && (err != nil || status != earlier) {
			return 0
		}
		return 1
	}}
	t.Cleanup(b.drv.WaitLate)
	return b
}

func (b *bench) acquire(t *testing.T, req locker.Request) *locker.Lock {
	t.Helper()
	req.Name = name
	return locker.Must(b.Acquire(t.Context(), req))
}

// wantFree waits in fake time until the key is gone.
func (b *bench) wantFree(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Second); b.m.Exists(name); time.Sleep(time.Millisecond) { //nolint:forbidigo // fake time
		if time.Now().After(end) {
			t.Fatal("the key is still there")
		}
	}
}

// wantShortfall demands the error of a grant without an acknowledging replica.
func wantShortfall(t *testing.T, err error) {
	t.Helper()
	if short, ok := errors.AsType[*locker.ReplicaError](err); !ok || short.Acked != 0 || short.Wanted != 1 || short.Within <= 0 {
		t.Errorf("got error %v, want a ReplicaError of 0 of 1", err)
	}
	wantIs(t, err, locker.ErrNotReplicated)
	check.IsNot(t, err, locker.ErrNotAcquired, locker.ErrNotHeld, locker.ErrUnknownOutcome)
	check.Equal(t, fmt.Sprintf("Transient(%v)", err), driver.Transient(err), true)
}
