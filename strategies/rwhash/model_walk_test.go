package rwhash_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// walk is a sequence of random operations.
type walk struct {
	*model
	drv    *faultdriver.Driver
	l      *rwhash.Locker
	rand   *rand.Rand
	locks  []*locker.Lock
	unsure map[*locker.Lock]bool          // a conversion of theirs may have been executed
	first  map[*locker.Lock]locker.Handle // from when they were acquired
	given  int64                          // the highest token of a Lock
}

var oddities = []string{"me", "\x00", "1:2", " 3 ", "\xff\xfe\n", "kind", ""}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (w *walk) ttl() time.Duration {
	return pick(w.rand, 20*time.Millisecond, 300*time.Millisecond, 2*time.Second, 2*time.Second, 20*time.Second)
}

func (w *walk) fails() {
	switch w.rand.IntN(8) {
	case 0:
		w.drv.Then(fault{Lose: true})
	case 1:
		w.drv.Then(fault{Hang: true})
	case 2:
		w.drv.Then(fault{Late: time.Duration(w.rand.IntN(3000)+1) * time.Millisecond})
	case 3:
		w.drv.Then(fault{Lose: true}, fault{Lose: true})
	case 4:
		w.drv.Then(fault{Lose: true}, fault{Hang: true}, fault{Hang: true})
	default:
		w.drv.Then()
	}
}

func (w *walk) step() {
	w.fails()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Duration(w.rand.IntN(4000)+100)*time.Millisecond)
	defer cancel()
	if w.rand.IntN(2) == 0 {
		until, _ := ctx.Deadline()
		since := time.Now().Add(-time.Duration(w.rand.IntN(5000)) * time.Millisecond)
		ctx = lease.WithWaiting(ctx, lease.Waiting{ID: lease.NewToken(), Since: since, Until: until})
	}
	if len(w.locks) == 0 {
		w.acquire(ctx)
		return
	}
	lock := pick(w.rand, w.locks...)
	switch w.rand.IntN(12) {
	case 0, 1, 2:
		w.acquire(ctx)
	case 3, 4:
		_ = lock.Release(ctx)
	case 5:
		before := lock.Deadline()
		if err := lock.Renew(ctx, w.ttl()); err == nil && lock.Deadline().Before(before) {
			w.t.Error("a renewal shortened a lease")
		}
	case 6, 7:
		w.convert(ctx, lock)
	case 8:
		w.resume(ctx, lock)
	case 9:
		w.replay(w.rand)
	default:
		sleep(time.Duration(w.rand.IntN(pick(w.rand, 20, 400, 1500))) * time.Millisecond)
	}
	w.locks = slices.DeleteFunc(w.locks, func(l *locker.Lock) bool { return l.Err() != nil && w.rand.IntN(2) == 0 })
}

func (w *walk) acquire(ctx context.Context) {
	lock, err := w.l.Acquire(ctx, locker.Request{
		Name: name, Mode: pick(w.rand, locker.Shared, locker.Shared, locker.Exclusive), TTL: w.ttl(), NoWait: w.rand.IntN(2) == 0,
		Fenced: w.rand.IntN(2) == 0, Owner: pick(w.rand, oddities...), Note: pick(w.rand, oddities...),
	})
	if err == nil {
		w.locks = append(w.locks, lock)
		w.first[lock] = lock.Handle()
		w.fenced(lock)
	}
}

func (w *walk) convert(ctx context.Context, lock *locker.Lock) {
	from, to := lock.Mode(), lock.Upgrade
	if w.rand.IntN(2) == 0 {
		to = lock.Downgrade
	}
	err := to(ctx)
	switch {
	case errors.Is(err, locker.ErrUnknownOutcome):
		w.unsure[lock] = true
		if w.rand.IntN(2) == 0 {
			w.drv.Then()
			w.convert(w.t.Context(), lock) // as is advised
		}
	case err == nil:
		if from == locker.Shared && lock.Mode() == locker.Exclusive {
			w.fenced(lock)
		}
		delete(w.unsure, lock)
	}
}

func (w *walk) resume(ctx context.Context, lock *locker.Lock) {
	h, old := w.first[lock]
	if !old || w.rand.IntN(2) == 0 {
		h = lock.Handle()
	}
	resumed, err := locker.Resume(ctx, w.l, h)
	if err == nil {
		w.locks = slices.DeleteFunc(w.locks, func(l *locker.Lock) bool { return l == lock })
		w.locks = append(w.locks, resumed)
		w.fenced(resumed)
	}
}

// fenced fails the test unless a new writer's token exceeds those of all before it.
func (w *walk) fenced(lock *locker.Lock) {
	switch fence := lock.Fence(); {
	case fence == 0:
	case fence < w.given || fence == w.given && lock.Mode() == locker.Exclusive:
		w.t.Errorf("a new hold, %v, has the token %d, there was %d before", lock.Mode(), fence, w.given)
	default:
		w.given = fence
	}
}

// check fails the test if Locks that report a hold exclude each other.
func (w *walk) check() {
	var readers, writers int
	for _, lock := range w.locks {
		switch {
		case lock.Err() != nil:
		case lock.Mode() == locker.Shared || w.unsure[lock]:
			readers++
		default:
			writers++
		}
	}
	if writers > 1 || writers == 1 && readers > 0 {
		w.t.Errorf("%d writers and %d readers believe to hold", writers, readers)
	}
	w.drv.Then()
	match(w.t, check.ErrOf(w.l.Inspect(w.t.Context(), name))) // the model compares
}
