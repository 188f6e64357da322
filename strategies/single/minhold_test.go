package single_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/handover"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// wantFreeAt demands that the name becomes free at want, and waits for it in fake time.
func (b bench) wantFreeAt(t *testing.T, want time.Time) {
	t.Helper()
	b.wantFree(t, time.Hour)
	check.Within(t, "time after which the name is free", time.Since(want), 0, 2*time.Millisecond)
}

// A release resent, or repeated in the background, keeps the name until the same time.
func TestMinHoldOfResends(t *testing.T) {
	const minHold, work = 20 * time.Second, time.Second
	hang := fault{Hang: true}
	type test struct {
		plan []fault
		err  []error
	}
	eachRun(t, single.Config{AttemptTimeout: time.Second}, map[string]test{
		"answered":                   {},
		"answer lost":                {plan: []fault{{Lose: true}}},
		"not executed":               {plan: []fault{hang}},
		"not executed twice":         {plan: []fault{hang, hang}, err: []error{locker.ErrUnknownOutcome}},
		"not executed for a while":   {plan: []fault{hang, hang, hang, hang, hang}, err: []error{locker.ErrUnknownOutcome}},
		"executed behind its resend": {plan: []fault{{Late: 2 * time.Second}}},
	}, func(t *testing.T, b bench, tt test) {
		lock := b.acquire(t, locker.Request{TTL: time.Minute, MinHold: minHold})
		end := time.Now().Add(minHold)
		sleep(work)
		b.drv.Then(tt.plan...)
		check.Is(t, lock.Release(t.Context()), tt.err...)
		b.wantFreeAt(t, end)
	})
}

// A release executed late by the server keeps the name for as much longer, but not beyond the
// lease.
func TestMinHoldEndsWithLease(t *testing.T) {
	run(t, single.Config{AttemptTimeout: time.Second}, func(t *testing.T, b bench) {
		lock := b.acquire(t, locker.Request{TTL: 12 * time.Second, MinHold: 10 * time.Second})
		acquired := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing is resent
		b.drv.Then(fault{Late: 5 * time.Second}, fault{Hang: true}, fault{Hang: true}, fault{Hang: true}, fault{Hang: true}, fault{Hang: true}, fault{Hang: true})
		check.Is(t, lock.Release(ctx), locker.ErrUnknownOutcome)
		b.wantFree(t, time.Hour)
		took := time.Since(acquired)
		check.Within(t, "time until the name was free", took, 10*time.Second, 12*time.Second+time.Millisecond)
	})
}

// When MinHold has passed, in any configuration, waiters of all processes acquire the lock in turn.
func TestWaitersAtEndOfMinHold(t *testing.T) {
	t.Parallel()
	for _, cfg := range []struct {
		fair     bool
		handOver time.Duration
	}{{false, 0}, {false, time.Hour}, {true, 0}, {true, time.Hour}} {
		t.Run(fmt.Sprintf("fair %v, hand-over %v", cfg.fair, cfg.handOver), func(t *testing.T) {
			run(t, single.Config{Fair: cfg.fair}, func(t *testing.T, b bench) {
				process := func() locker.Locker {
					l := locker.Must(retry.New(retry.Config{}))(b.Locker)
					if cfg.handOver > 0 {
						l = locker.Must(handover.New(handover.Config{Tenure: cfg.handOver}))(l)
					}
					return l
				}
				mine, theirs := process(), process()
				const minHold = 7 * time.Second
				held := locker.Must(mine.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute, MinHold: minHold}))
				end := time.Now().Add(minHold)
				acquired := make(chan time.Time, 3)
				var released sync.WaitGroup
				for _, l := range []locker.Locker{mine, theirs, theirs} {
					released.Go(func() {
						lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute}))
						acquired <- time.Now()
						check.OK(t, lock.Release(t.Context()))
					})
					synctest.Wait()
				}
				sleep(time.Second)
				check.OK(t, held.Release(t.Context()))
				for i := range 3 {
					at := <-acquired
					if off := at.Sub(end); off < 0 || i == 0 && off > 5*time.Millisecond {
						t.Errorf("waiter %d acquired the lock %v after the end of MinHold", i, off)
					}
				}
				released.Wait()
			})
		})
	}
}

// ReleaseTimeout bounds a release without an answer, even once its ctx has ended, and the release
// goes on.
func TestReleaseTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		ended   bool
		want    time.Duration
	}{
		{"default", 0, false, 6 * time.Second},
		{"default, ctx ended", 0, true, 3 * time.Second},
		{"short", 200 * time.Millisecond, false, 200 * time.Millisecond},
		{"short, ctx ended", 200 * time.Millisecond, true, 200 * time.Millisecond},
		{"long", 10 * time.Second, false, 10 * time.Second},
		{"long, ctx ended", 10 * time.Second, true, 3 * time.Second},
	} {
		for when, noted := range map[string]bool{"": false, ", after an unanswered SetNote": true} {
			t.Run(tt.name+when, func(t *testing.T) {
				run(t, single.Config{ReleaseTimeout: tt.timeout}, func(t *testing.T, b bench) {
					lock := b.acquire(t, locker.Request{TTL: time.Minute})
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					hang := fault{Hang: true}
					if noted {
						b.drv.Then(hang)
						noting, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						check.Is(t, lock.SetNote(noting, "new"), locker.ErrUnknownOutcome)
					}
					if tt.ended {
						cancel()
					}
					b.drv.Then(slices.Repeat([]fault{hang}, 10)...)
					start := time.Now()
					only(t, lock.Release(ctx), locker.ErrUnknownOutcome, locker.ErrLost)
					check.Within(t, "time of the release", time.Since(start), tt.want-10*time.Millisecond, tt.want)
					b.wantFree(t, time.Minute-time.Since(start)-2*time.Second)
				})
			})
		}
	}
	for _, bad := range []time.Duration{-1, time.Microsecond} {
		_, err := single.New(&faultdriver.Driver{}, single.Config{ReleaseTimeout: bad})
		check.Is(t, err, locker.ErrInvalid)
	}
}
