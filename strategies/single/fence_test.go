package single_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

const counter = "{job}:fence"

// leaseOf is what middleware gets to wrap.
func leaseOf(lock *locker.Lock) (lease locker.Lease) {
	locker.WrapLease(lock, func(l locker.Lease) locker.Lease { lease = l; return l })
	return lease
}

// A counter is never set to what it could not count on from.
func TestRaiseFenceRefusesWhatItCannotCount(t *testing.T) {
	t.Parallel()
	for _, fence := range []int64{math.MaxInt64, 1<<53 - 1, 0, -5} {
		t.Run(strconv.FormatInt(fence, 10), func(t *testing.T) {
			run(t, single.Config{}, func(t *testing.T, b bench) {
				lock := b.acquire(t, locker.Request{Fenced: true})
				_, err := leaseOf(lock).Do(t.Context(), locker.Op{Kind: locker.OpRaiseFence, Fence: fence})
				match(t, err, []error{locker.ErrInvalid}, nil)
				match(t, lock.Release(t.Context()), nil, nil)
				match(t, b.acquire(t, locker.Request{Fenced: true}).Release(t.Context()), nil, nil)
			})
		})
	}
}

// Whatever touches the counter leaves it to outlive the lock.
func TestCounterOutlivesTheLock(t *testing.T) {
	t.Parallel()
	for what, touch := range map[string]func(*testing.T, bench, *locker.Lock) *locker.Lock{
		"resume": func(t *testing.T, b bench, lock *locker.Lock) *locker.Lock {
			again, err := locker.Resume(t.Context(), b, lock.Handle())
			match(t, err, nil, nil)
			return again
		},
		"raise": func(t *testing.T, _ bench, lock *locker.Lock) *locker.Lock {
			_, err := leaseOf(lock).Do(t.Context(), locker.Op{Kind: locker.OpRaiseFence, Fence: lock.Fence() + 1000})
			match(t, err, nil, nil)
			return lock
		},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, single.Config{}, func(t *testing.T, b bench) {
				lock := b.acquire(t, locker.Request{TTL: 30 * time.Second, Fenced: true})
				match(t, lock.Renew(t.Context(), 10*24*time.Hour), nil, nil)
				lock = touch(t, b, lock)
				if lease, kept := b.m.TTL(name), b.m.TTL(counter); kept < lease+24*time.Hour {
					t.Errorf("the lock lives for %v, its counter for %v", lease, kept)
				}
				match(t, lock.Release(t.Context()), nil, nil)
			})
		})
	}
}
