package single_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/single"
)

const counter = "{job}:fence"

// leaseOf returns the Lease inside lock.
func leaseOf(lock *locker.Lock) (found lease.Lease) {
	lock.Hold().Wrap(func(l lease.Lease) lease.Lease { found = l; return l })
	return found
}

// The counter is never set to a value that cannot be incremented.
func TestRaiseFenceRefusesWhatItCannotCount(t *testing.T) {
	t.Parallel()
	for _, fence := range []int64{math.MaxInt64, 1<<53 - 1, 0, -5} {
		t.Run(strconv.FormatInt(fence, 10), func(t *testing.T) {
			run(t, single.Config{}, func(t *testing.T, b bench) {
				lock := b.acquire(t, locker.Request{Fenced: true})
				_, err := leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: fence})
				match(t, err, []error{locker.ErrInvalid}, nil)
				match(t, lock.Release(t.Context()), nil, nil)
				match(t, b.acquire(t, locker.Request{Fenced: true}).Release(t.Context()), nil, nil)
			})
		})
	}
}

// Every operation on the counter keeps it for longer than the lock.
func TestCounterOutlivesTheLock(t *testing.T) {
	t.Parallel()
	for what, touch := range map[string]func(*testing.T, bench, *locker.Lock) *locker.Lock{
		"resume": func(t *testing.T, b bench, lock *locker.Lock) *locker.Lock {
			again, err := locker.Resume(t.Context(), b, lock.Handle())
			match(t, err, nil, nil)
			return again
		},
		"raise": func(t *testing.T, _ bench, lock *locker.Lock) *locker.Lock {
			_, err := leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: lock.Fence() + 1000})
			match(t, err, nil, nil)
			return lock
		},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, single.Config{}, func(t *testing.T, b bench) {
				lock := b.acquire(t, locker.Request{TTL: 30 * time.Second, Fenced: true})
				match(t, lock.Renew(t.Context(), 10*24*time.Hour), nil, nil)
				lock = touch(t, b, lock)
				if left, kept := b.m.TTL(name), b.m.TTL(counter); kept < left+24*time.Hour {
					t.Errorf("the lock lives for %v, its counter for %v", left, kept)
				}
				match(t, lock.Release(t.Context()), nil, nil)
			})
		})
	}
}
