package lockertest_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// outages are the kinds of outages and the errors of every call in them.
var outages = map[lockertest.Outage]error{
	lockertest.Refused: syscall.ECONNREFUSED,
	lockertest.Silent:  locker.ErrUnknownOutcome,
}

func TestOutageFailsEveryCall(t *testing.T) {
	t.Parallel()
	for kind, want := range outages {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := lockertest.New()
				lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Minute, Fenced: true})
				other := acquire(t, l, locker.Request{Name: "b", TTL: time.Minute})
				l.SetOutage(kind)
				for range 2 {
					_, err := l.Acquire(forASecond(t), locker.Request{Name: "c"})
					wantError(t, "Acquire", err, want)
					wantOp(t, err, "acquire")
					_, err = locker.Resume(forASecond(t), l, lock.Handle())
					wantError(t, "Resume", err, want)
					wantOp(t, err, "resume")
				}
				wantError(t, "Release", other.Release(t.Context()), want)
				wantError(t, "Downgrade", lock.Downgrade(forASecond(t)), want)
				before := lock.Deadline()
				wantError(t, "Renew", lock.Renew(forASecond(t), time.Hour), want)
				if lock.Err() != nil || !lock.Deadline().Equal(before) {
					t.Errorf("a renewal that failed left %v until %v, want %v", lock, lock.Deadline(), before)
				}
				wantError(t, "ReleaseHandle", locker.ReleaseHandle(t.Context(), l, lock.Handle()), want)
				_, err := locker.Break(forASecond(t), l, "a")
				wantOp(t, err, "break")
				if !driver.Transient(err) {
					t.Errorf("Break: %v, want a transient error", err)
				}
				_, err = l.Inspect(forASecond(t), "a")
				wantOp(t, err, "inspect")
				if errors.Is(err, locker.ErrUnknownOutcome) || !driver.Transient(err) {
					t.Errorf("Inspect: %v, want a transient error, and no unknown outcome: it changes nothing", err)
				}
			})
		})
	}
}

func forASecond(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// A lock that is held through an outage is lost when its lease ends, and no sooner.
func TestLeaseEndsInAnOutage(t *testing.T) {
	t.Parallel()
	for kind := range outages {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, start := lockertest.New(), time.Now()
				lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Minute})
				l.SetOutage(kind)
				<-lock.Done()
				if got := time.Since(start); got != time.Minute {
					t.Errorf("lost after %v, want 1m", got)
				}
				wantError(t, "Err", lock.Err(), locker.ErrLost)
				l.SetOutage(lockertest.NoOutage)
				release(t, acquire(t, l, locker.Request{Name: "a"}))
			})
		})
	}
}

// What an outage held up goes on when it is over.
func TestCallsGoOnAfterASilentOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, start := lockertest.New(), time.Now()
		held := acquire(t, l, locker.Request{Name: "held", TTL: time.Minute})
		released := acquire(t, l, locker.Request{Name: "released", TTL: time.Minute})
		l.SetOutage(lockertest.Silent)
		time.AfterFunc(time.Second, func() { l.SetOutage(lockertest.Refused) }) // what was sent stays sent
		time.AfterFunc(2*time.Second, func() { l.SetOutage(lockertest.NoOutage) })
		calls := map[string]func() error{
			"Acquire": func() error {
				_, err := l.Acquire(t.Context(), locker.Request{Name: "free"})
				return err
			},
			"Renew":   func() error { return held.Renew(t.Context(), 0) },
			"Release": func() error { return released.Release(t.Context()) },
		}
		done := make(chan error)
		for name, call := range calls {
			go func() {
				err := call()
				if took := time.Since(start); took != 2*time.Second {
					t.Errorf("%s took %v, want the 2s of the outage", name, took)
				}
				done <- err
			}()
		}
		for range calls {
			wantError(t, "a call in an outage", <-done)
		}
		if !inspect(t, l, "free").Held || inspect(t, l, "released").Held || inspect(t, l, "held").Left != time.Minute {
			t.Errorf("free: %+v, released: %+v, held: %+v", inspect(t, l, "free"), inspect(t, l, "released"), inspect(t, l, "held"))
		}
	})
}

// A release that failed is executed when the outage is over, as the clean-up of a strategy does.
func TestReleaseAfterAnOutage(t *testing.T) {
	t.Parallel()
	for kind := range outages {
		for name, release := range map[string]func(*lockertest.Locker, *locker.Lock) error{
			"Release": func(_ *lockertest.Locker, lock *locker.Lock) error { return lock.Release(t.Context()) },
			"ReleaseHandle": func(l *lockertest.Locker, lock *locker.Lock) error {
				return l.ReleaseHandle(t.Context(), lock.Handle())
			},
		} {
			for what, minHold := range map[string]time.Duration{"no MinHold": 0, "MinHold": 30 * time.Minute} {
				t.Run(kind.String()+"/"+name+"/"+what, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						l := lockertest.New()
						lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Hour, MinHold: minHold})
						l.SetOutage(kind)
						if err := release(l, lock); err == nil {
							t.Fatal("the release succeeded in an outage")
						}
						advance(time.Minute)
						l.SetOutage(lockertest.NoOutage)
						state := inspect(t, l, "a")
						if state.Held != (minHold > 0) || state.Holds != 0 || state.Left > minHold-time.Minute && minHold > 0 {
							t.Errorf("after the outage: %+v", state)
						}
					})
				})
			}
		}
	}
}

// A late release must not end the hold of the next holder.
func TestReleaseAfterAnOutageIsOfItsHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Second})
		l.SetOutage(lockertest.Refused)
		wantError(t, "Release", lock.Release(t.Context()), syscall.ECONNREFUSED)
		advance(time.Second)
		next := l.Hold(locker.Request{Name: "a"})
		l.SetOutage(lockertest.NoOutage)
		if !inspect(t, l, "a").Held || next.Err() != nil {
			t.Errorf("the next holder has %v", next)
		}
	})
}

// How long a call waits in a silent outage is bounded where a strategy bounds it.
func TestSilentOutageIsBounded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		call func(context.Context, *lockertest.Locker, *locker.Lock) error
		want time.Duration
	}{
		{"Acquire", func(ctx context.Context, l *lockertest.Locker, _ *locker.Lock) error {
			_, err := l.Acquire(ctx, locker.Request{Name: "b"})
			return err
		}, 30 * time.Second},
		{"Acquire for an hour", func(ctx context.Context, l *lockertest.Locker, _ *locker.Lock) error {
			_, err := l.Acquire(ctx, locker.Request{Name: "b", TTL: time.Hour})
			return err
		}, time.Hour},
		{"Acquire with NoWait", func(ctx context.Context, l *lockertest.Locker, _ *locker.Lock) error {
			_, err := l.Acquire(ctx, locker.Request{Name: "b", TTL: 6 * time.Second, NoWait: true})
			return err
		}, 2 * time.Second},
		{"Acquire with MaxWait", func(ctx context.Context, l *lockertest.Locker, _ *locker.Lock) error {
			_, err := l.Acquire(ctx, locker.Request{Name: "b", MaxWait: time.Second})
			if !errors.Is(err, locker.ErrMaxWait) {
				return errors.New("it does not match ErrMaxWait")
			}
			return err
		}, time.Second},
		{"Inspect", func(ctx context.Context, l *lockertest.Locker, _ *locker.Lock) error {
			_, err := l.Inspect(ctx, "a")
			return errors.Join(err, locker.ErrUnknownOutcome)
		}, 3 * time.Second},
		{"Renew", func(ctx context.Context, _ *lockertest.Locker, lock *locker.Lock) error {
			return errors.Join(lock.Renew(ctx, 0), locker.ErrUnknownOutcome) // it ends with the lock
		}, time.Minute},
		{"Release", func(ctx context.Context, _ *lockertest.Locker, lock *locker.Lock) error {
			return lock.Release(ctx)
		}, 6 * time.Second},
		{"Release with a cancelled ctx", func(ctx context.Context, _ *lockertest.Locker, lock *locker.Lock) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return lock.Release(ctx)
		}, 3 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := lockertest.New()
				lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Minute})
				l.SetOutage(lockertest.Silent)
				start := time.Now()
				wantError(t, tt.name, tt.call(t.Context(), l, lock), locker.ErrUnknownOutcome)
				if took := time.Since(start); took != tt.want {
					t.Errorf("it took %v, want %v", took, tt.want)
				}
			})
		})
	}
}

// Failures that were set are for calls that reach the server.
func TestFailuresOutliveAnOutage(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	l.FailAcquire(errFirst)
	l.SetOutage(lockertest.Refused)
	_, err := l.Acquire(t.Context(), locker.Request{Name: "a"})
	wantError(t, "Acquire in the outage", err, driver.ErrNotSent)
	l.SetOutage(lockertest.Refused)
	l.SetOutage(lockertest.NoOutage)
	_, err = l.Acquire(t.Context(), locker.Request{Name: "a"})
	wantError(t, "Acquire after it", err, errFirst)
}

func TestBadOutage(t *testing.T) {
	t.Parallel()
	panics(t, func() { lockertest.New().SetOutage(-1) })
	panics(t, func() { lockertest.New().SetOutage(lockertest.Silent + 1) })
	if got := lockertest.Outage(7).String() + " " + lockertest.NoOutage.String(); got != "Outage(7) no outage" {
		t.Errorf("String: %q", got)
	}
}

// A Break that found the holds and met an outage ends them when it is over, and no later ones.
func TestBreakAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		for _, name := range []string{"a", "b"} {
			lock := acquire(t, l, locker.Request{Name: name, TTL: time.Minute})
			_, end, err := l.FindHolds(t.Context(), name)
			wantError(t, "FindHolds", err)
			l.SetOutage(lockertest.Silent)
			wantError(t, "Break in the outage", end(t.Context()), locker.ErrUnknownOutcome)
			if name == "b" {
				<-lock.Done()
				l.Hold(locker.Request{Name: name})
			}
			l.SetOutage(lockertest.NoOutage)
			if held := inspect(t, l, name).Held; held != (name == "b") {
				t.Errorf("%s is held: %v", name, held)
			}
		}
	})
}
