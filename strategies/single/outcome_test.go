package single_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

const name = "job"

func run(t *testing.T, cfg single.Config, f func(t *testing.T, b bench)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newBench(t, cfg)) })
}

func (b bench) acquire(t *testing.T, req locker.Request) *locker.Lock {
	t.Helper()
	req.Name = name
	lock, err := b.Acquire(t.Context(), req)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return lock
}

// wantFree waits in fake time until the key is gone, at most for the duration within.
func (b bench) wantFree(t *testing.T, within time.Duration) {
	t.Helper()
	end := time.Now().Add(within)
	for b.m.Exists(name) {
		if time.Now().After(end) {
			t.Fatalf("the key is still there %v later", within)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // fake time
	}
}

func match(t *testing.T, err error, want, wantNot []error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("error %v does not match %v", err, w)
		}
	}
	for _, w := range wantNot {
		if errors.Is(err, w) {
			t.Errorf("error %v matches %v", err, w)
		}
	}
	if len(want) == 0 && err != nil {
		t.Errorf("error %v, want none", err)
	}
}

// Contract 9.
func TestRenew(t *testing.T) {
	run(t, single.Config{AttemptTimeout: time.Second}, func(t *testing.T, b bench) {
		lock := b.acquire(t, locker.Request{TTL: 10 * time.Second, Fenced: true})
		deadline := lock.Deadline()

		match(t, lock.Renew(t.Context(), time.Second), nil, nil)
		if !lock.Deadline().Equal(deadline) || b.m.TTL(name) != 10*time.Second {
			t.Errorf("a shorter renew left Deadline %v and TTL %v", lock.Deadline(), b.m.TTL(name))
		}

		b.drv.Then(fault{Hang: true}, fault{Hang: true}, fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		match(t, lock.Renew(ctx, 0), []error{locker.ErrUnknownOutcome, context.DeadlineExceeded}, []error{locker.ErrNotHeld})
		if !lock.Deadline().Equal(deadline) || lock.Err() != nil {
			t.Errorf("a renew of unknown outcome left Deadline %v, error %v", lock.Deadline(), lock.Err())
		}

		b.drv.Then(fault{Lose: true})
		match(t, lock.Renew(t.Context(), 0), nil, nil)
		if got := time.Until(lock.Deadline()); got < 9800*time.Millisecond {
			t.Errorf("after a renew %v are left", got)
		}

		b.m.Del(name)
		match(t, lock.Renew(t.Context(), 0), []error{locker.ErrLost}, nil)
		match(t, lock.Err(), []error{locker.ErrLost}, nil)
		b.drv.Then()
		match(t, lock.Renew(t.Context(), 0), []error{locker.ErrLost}, nil)
		if b.drv.Sent() != 0 {
			t.Error("a renew after the loss was sent")
		}
	})
}

// Contract 9: a renewal in flight at the Deadline does not bring the lock back, whatever its reply.
func TestRenewAcrossTheDeadline(t *testing.T) {
	run(t, single.Config{AttemptTimeout: 5 * time.Second}, func(t *testing.T, b bench) {
		lock := b.acquire(t, locker.Request{TTL: 3 * time.Second})
		time.Sleep(2 * time.Second) //nolint:forbidigo // fake time
		b.drv.Then(fault{Delay: 2 * time.Second})
		match(t, lock.Renew(t.Context(), time.Hour), []error{locker.ErrLost}, nil)
		<-lock.Done()
		match(t, lock.Release(t.Context()), []error{locker.ErrLost}, nil)
		b.wantFree(t, time.Millisecond)
	})
}
