package single_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
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

// Contract 4: an acquire whose reply was lost is resent with the same token. Its Deadline counts
// from the first send if that was executed, else from the later one.
func TestAcquireWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	const ttl, drift = 10 * time.Second, 102 * time.Millisecond
	tests := []struct {
		name   string
		plan   []fault
		fenced bool
		from   time.Duration // the Deadline counts from this long after the first send
	}{
		{name: "answered", from: 0},
		{name: "executed", plan: []fault{{Lose: true}}},
		{name: "executed, fenced", plan: []fault{{Lose: true}}, fenced: true},
		{name: "not executed", plan: []fault{{Hang: true}}, from: time.Second},
		{name: "executed, and the second answer lost too", plan: []fault{{Lose: true}, {Lose: true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run(t, single.Config{AttemptTimeout: time.Second}, func(t *testing.T, b bench) {
				start := time.Now()
				b.drv.Then(tt.plan...)
				lock := b.acquire(t, locker.Request{TTL: ttl, Fenced: tt.fenced})
				if got := lock.Deadline().Sub(start) - ttl + drift; got < tt.from || got > tt.from+10*time.Millisecond {
					t.Errorf("the Deadline counts from %v after the first send, want %v", got, tt.from)
				}
				if (lock.Fence() > 0) != tt.fenced {
					t.Errorf("fence %d", lock.Fence())
				}
				match(t, lock.Release(t.Context()), nil, nil)
				b.wantFree(t, 0)
			})
		})
	}
}

// Contract 5: everything that an abandoned acquire may still leave is removed.
func TestAcquireGivenUpLeavesNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		plan   []fault
		within time.Duration
	}{
		{name: "executed, answer lost", plan: []fault{{Lose: true}, {Hang: true}}, within: 10 * time.Millisecond},
		{name: "executed while the caller was leaving", plan: []fault{{Late: 2 * time.Second}, {Hang: true}}, within: time.Second},
		{name: "executed long after", plan: []fault{{Late: 20 * time.Second}, {Hang: true}}, within: time.Second},
		{name: "executed after an outage", plan: []fault{{Late: 9 * time.Second}, {Hang: true}, {Err: errCut}, {Err: errCut}, {Err: errCut}}, within: time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run(t, single.Config{}, func(t *testing.T, b bench) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				b.drv.Then(tt.plan...)
				_, err := b.Acquire(ctx, locker.Request{Name: name, TTL: time.Hour})
				match(t, err, []error{locker.ErrUnknownOutcome, context.DeadlineExceeded}, []error{locker.ErrNotAcquired})
				b.drv.WaitLate()
				b.wantFree(t, tt.within)
			})
		})
	}
}

// Contract 5 for a lock that a later send acquired and that was then released: the first send may
// still be executed.
func TestReleaseOutlivesAnOpenSend(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		b.drv.Then(fault{Late: 10 * time.Second})
		lock := b.acquire(t, locker.Request{TTL: time.Hour})
		match(t, lock.Release(t.Context()), nil, nil)
		b.drv.WaitLate()
		b.wantFree(t, time.Second)
	})
}

// Contract 5 for a refusal: the unanswered send may succeed after the holder has left.
func TestRefusedWithAnOpenSend(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		holder := b.acquire(t, locker.Request{})
		b.drv.Then(fault{Late: 5 * time.Second})
		_, err := b.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Hour})
		match(t, err, []error{locker.ErrNotAcquired}, []error{locker.ErrUnknownOutcome})
		match(t, holder.Release(t.Context()), nil, nil)
		b.drv.WaitLate()
		b.wantFree(t, time.Second)
	})
}

// Contract 4: an acquire that is answered after its Deadline is undone.
func TestAcquireAnsweredTooLate(t *testing.T) {
	run(t, single.Config{AttemptTimeout: 5 * time.Second}, func(t *testing.T, b bench) {
		b.drv.Then(fault{Delay: 995 * time.Millisecond})
		_, err := b.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Second})
		match(t, err, []error{locker.ErrLost}, []error{locker.ErrNotAcquired, locker.ErrUnknownOutcome})
		synctest.Wait()
		b.wantFree(t, 2*time.Millisecond)
	})
}

// Contract 7.
func TestReleaseOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		plan    []fault
		late    time.Duration // release this long after the acquire
		steal   bool          // the key is gone before
		cancel  bool          // ctx is cancelled before
		want    []error
		wantNot []error
		sent    int
	}{
		{name: "executed, then not there: success", plan: []fault{{Lose: true}}, sent: 2},
		{name: "not executed, then executed: success", plan: []fault{{Hang: true}}, sent: 2},
		{name: "not there at the first answer: lost", steal: true, want: []error{locker.ErrLost}, sent: 1},
		{name: "after the Deadline: lost, and sent", late: 11 * time.Second, want: []error{locker.ErrLost}, sent: 1},
		{name: "cancelled ctx: sent all the same", cancel: true, sent: 1},
		{
			name: "cancelled ctx, answer lost", cancel: true, plan: []fault{{Lose: true}},
			want: []error{locker.ErrUnknownOutcome, context.Canceled}, wantNot: []error{locker.ErrNotHeld}, sent: 1,
		},
		{
			name: "no answer at all", plan: []fault{{Hang: true}, {Hang: true}},
			want: []error{locker.ErrUnknownOutcome}, wantNot: []error{locker.ErrNotHeld}, sent: 2,
		},
		{
			name: "a server that may not write", plan: []fault{{Err: &driver.ServerError{Text: "READONLY no", Err: errCut}}},
			want: []error{errCut}, wantNot: []error{locker.ErrNotHeld, locker.ErrUnknownOutcome}, sent: 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run(t, single.Config{AttemptTimeout: time.Second}, func(t *testing.T, b bench) {
				lock := b.acquire(t, locker.Request{TTL: 10 * time.Second})
				time.Sleep(tt.late) //nolint:forbidigo // fake time
				if tt.steal {
					b.m.Del(name)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancel {
					cancel()
				}
				b.drv.Then(tt.plan...)
				start := time.Now()
				err := lock.Release(ctx)
				sent, took := b.drv.Sent(), time.Since(start)
				match(t, err, tt.want, tt.wantNot)
				if sent != tt.sent && len(tt.want) == 0 || sent < tt.sent {
					t.Errorf("%d commands sent, want %d", sent, tt.sent)
				}
				if took > 2010*time.Millisecond {
					t.Errorf("release took %v, want at most two attempt timeouts", took)
				}
				b.wantFree(t, time.Second)
				match(t, lock.Release(ctx), []error{locker.ErrReleased}, nil)
			})
		})
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

// Contract 11, with the reply lost: the resend finds its own token, and the fencing token is minted
// once.
func TestResumeWhoseAnswerIsLost(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		first := b.acquire(t, locker.Request{TTL: 10 * time.Second, Fenced: true, Owner: "a|b", Note: "n"})
		b.drv.Then(fault{Lose: true})
		second, err := locker.Resume(t.Context(), b, first.Handle())
		if err != nil {
			t.Fatal(err)
		}
		if second.Fence() <= first.Fence() || second.Owner() != "a|b" || second.TTL() != 10*time.Second {
			t.Errorf("resumed %v with TTL %v, from %v", second, second.TTL(), first)
		}
		match(t, first.Renew(t.Context(), 0), []error{locker.ErrLost}, nil)
		_, err = locker.Resume(t.Context(), b, first.Handle())
		match(t, err, []error{locker.ErrNotHeld}, []error{locker.ErrNotAcquired})
		var held *locker.ContentionError
		if _, err = b.Acquire(t.Context(), locker.Request{Name: name}); !errors.As(err, &held) || held.Owner != "a|b" || held.Note != "n" {
			t.Errorf("refused with %v, want owner and note of the resumed hold", err)
		}
		match(t, second.Release(t.Context()), nil, nil)
	})
}
