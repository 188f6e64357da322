package locker_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// No packet comes, and none is asked for: the end is known by the clock alone.
func TestDoneClosesAtTheDeadline(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{
		time.Millisecond, 999 * time.Millisecond, time.Second, 30 * time.Second, time.Hour + 1, 24 * 24 * time.Hour,
	} {
		t.Run(ttl.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &fakeLease{}
				start := time.Now()
				lock := hold(t, l, ttl)
				done := lock.Done()
				advance(ttl - 1)
				if closed(done) || lock.Err() != nil {
					t.Error("it ended before its Deadline")
				}
				<-done
				if got := time.Since(start); got != ttl {
					t.Errorf("Done closed after %v, want %v", got, ttl)
				}
				wantError(t, "Err", lock.Err(), locker.ErrLost)
				if !closed(lock.Done()) || len(l.asked()) != 0 {
					t.Errorf("Done closed: %v; asked %v", closed(lock.Done()), l.asked())
				}
			})
		})
	}
}

func TestDoneOfAnEndlessLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock := hold(t, &fakeLease{}, 0)
		done := lock.Done()
		advance(100 * 365 * 24 * time.Hour)
		if closed(done) || lock.Err() != nil {
			t.Errorf("it ended: %v", lock.Err())
		}
		wantError(t, "Release", lock.Release(t.Context()))
		if !closed(done) {
			t.Error("Done is open after Release")
		}
	})
}

func TestDoneMovesWithRenewals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		lock := hold(t, &fakeLease{}, 3*time.Second)
		done := lock.Done()
		for range 10 {
			advance(2 * time.Second)
			wantError(t, "Renew", lock.Renew(t.Context(), 0))
		}
		<-done
		if got := time.Since(start); got != 23*time.Second {
			t.Errorf("Done closed after %v, want 3s after the last renewal", got)
		}
	})
}

func TestDoneOfALeaseThatBecameEndless(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock := hold(t, refusing(nil), time.Second) // answers with a zero Deadline
		done := lock.Done()
		wantError(t, "Renew", lock.Renew(t.Context(), 0))
		advance(time.Hour)
		if closed(done) || lock.Err() != nil {
			t.Errorf("it ended: %v", lock.Err())
		}
	})
}

func TestDoneOfAGrantThatIsOver(t *testing.T) {
	t.Parallel()
	lock := hold(t, &fakeLease{}, -time.Second)
	if !closed(lock.Done()) {
		t.Error("Done is open past the Deadline")
	}
	wantError(t, "Err", lock.Err(), locker.ErrLost)
}

func TestAfterDone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(*testing.T, *locker.Lock)
		want []error
	}{
		"release":         {func(t *testing.T, lock *locker.Lock) { _ = lock.Release(t.Context()) }, []error{locker.ErrReleased}},
		"failed release":  {func(t *testing.T, lock *locker.Lock) { wantError(t, "", lock.Release(t.Context()), io.EOF) }, []error{locker.ErrReleased}},
		"loss":            {func(_ *testing.T, lock *locker.Lock) { lock.Hold().MarkLost(io.EOF) }, []error{locker.ErrLost, io.EOF}},
		"lease end":       {func(*testing.T, *locker.Lock) { advance(time.Minute) }, []error{locker.ErrLost}},
		"lost in renewal": {func(t *testing.T, lock *locker.Lock) { _ = lock.Renew(t.Context(), 0) }, []error{locker.ErrLost}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				answers := map[string]error{"failed release": io.EOF, "lost in renewal": locker.ErrNotHeld}
				lock := hold(t, refusing(answers[name]), time.Minute)
				var told []string
				tell := func(who string) func(error) {
					return func(err error) {
						told = append(told, who)
						wantError(t, who, err, tt.want...)
						wantError(t, who+", Err", lock.Err(), tt.want...) // the lock may be asked
						if !closed(lock.Done()) {
							t.Errorf("%s: told before Done", who)
						}
					}
				}
				lock.AfterDone(tell("first"))
				stopped := lock.AfterDone(tell("stopped"))
				var stopLast func() bool
				lock.AfterDone(func(err error) {
					tell("second")(err)
					if stopLast() {
						t.Error("stop took back what is being told")
					}
					lock.AfterDone(tell("added at the end"))
				})
				stopLast = lock.AfterDone(tell("last"))
				if !stopped() || stopped() {
					t.Error("stop must take f back once")
				}
				tt.end(t, lock)
				lock.AfterDone(tell("after the end"))
				advance(time.Hour)
				want := []string{"first", "second", "added at the end", "last", "after the end"}
				if !slices.Equal(told, want) {
					t.Errorf("told %v, want %v, once each", told, want)
				}
			})
		})
	}
}

// Whoever is first to find the Deadline passed, the timer or a method, tells those who wait; and
// once.
func TestWhoeverFindsTheEndTells(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(context.Context, *locker.Lock){
		"Err":       func(_ context.Context, lock *locker.Lock) { _ = lock.Err() },
		"Done":      func(_ context.Context, lock *locker.Lock) { lock.Done() },
		"AfterDone": func(_ context.Context, lock *locker.Lock) { lock.AfterDone(func(error) {}) },
		"Context":   func(ctx context.Context, lock *locker.Lock) { _, cancel := lock.Context(ctx); cancel() },
		"Renew":     func(ctx context.Context, lock *locker.Lock) { _ = lock.Renew(ctx, 0) },
		"Release":   func(ctx context.Context, lock *locker.Lock) { _ = lock.Release(ctx) },
		"MarkLost":  func(_ context.Context, lock *locker.Lock) { lock.Hold().MarkLost(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 50 {
				synctest.Test(t, func(t *testing.T) {
					lock := hold(t, &fakeLease{}, time.Second)
					told := make(chan error, 2)
					lock.AfterDone(func(err error) { told <- err })
					timer := time.NewTimer(time.Second) // the same instant as the lock's
					<-timer.C
					look(t.Context(), lock)
					advance(time.Hour)
					if len(told) != 1 {
						t.Fatalf("told %d times, want once", len(told))
					}
					wantError(t, "told", <-told, locker.ErrLost)
				})
			}
		})
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	for name, tt := range map[string]struct {
		end   func(lock *locker.Lock, parent, cancel func())
		err   error // nil: the ctx lives
		cause []error
	}{
		"lives":    {func(*locker.Lock, func(), func()) {}, nil, nil},
		"release":  {func(lock *locker.Lock, _, _ func()) { _ = lock.Release(context.Background()) }, context.Canceled, []error{locker.ErrReleased}},
		"loss":     {func(lock *locker.Lock, _, _ func()) { lock.Hold().MarkLost(io.EOF) }, context.Canceled, []error{locker.ErrLost, io.EOF}},
		"deadline": {func(*locker.Lock, func(), func()) { advance(time.Minute) }, context.Canceled, []error{locker.ErrLost}},
		"parent":   {func(_ *locker.Lock, parent, _ func()) { parent() }, context.Canceled, []error{io.ErrClosedPipe}},
		"cancel":   {func(_ *locker.Lock, _, cancel func()) { cancel() }, context.Canceled, []error{context.Canceled}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				lock := hold(t, &fakeLease{}, time.Minute)
				parent, endParent := context.WithCancelCause(context.WithValue(t.Context(), key{}, "v"))
				defer endParent(nil)
				ctx, cancel := lock.Context(parent)
				defer cancel()
				tt.end(lock, func() { endParent(io.ErrClosedPipe) }, cancel)
				synctest.Wait()
				if !errors.Is(ctx.Err(), tt.err) || (ctx.Err() == nil) != (tt.err == nil) {
					t.Errorf("Err %v, want %v", ctx.Err(), tt.err)
				}
				wantError(t, "Cause", context.Cause(ctx), tt.cause...)
				owner, _ := lease.OwnerFrom(ctx, "a")
				_, other := lease.OwnerFrom(ctx, "b")
				if ctx.Value(key{}) != "v" || owner != lock.Owner() || other {
					t.Errorf("value %v, owner %q, another name's: %v; want the parent's values and the owner for this name", ctx.Value(key{}), owner, other)
				}
			})
		})
	}
}

func TestContextOfAnEndedLock(t *testing.T) {
	t.Parallel()
	lock := hold(t, &fakeLease{}, time.Minute)
	lock.Hold().MarkLost(nil)
	ctx, cancel := lock.Context(t.Context())
	defer cancel()
	wantError(t, "Cause", context.Cause(ctx), locker.ErrLost)
}

// What was handed to a lock and taken back, or told, must not stay in memory as long as the lock or
// its timer.
func TestNothingIsKept(t *testing.T) {
	t.Parallel()
	t.Run("of a stopped callback", func(t *testing.T) {
		t.Parallel()
		lock := hold(t, &fakeLease{}, time.Hour)
		last := func() weak.Pointer[[64]byte] {
			var p weak.Pointer[[64]byte]
			for range 3 {
				big := new([64]byte)
				p = weak.Make(big)
				lock.AfterDone(func(error) { big[0]++ })()
			}
			return p
		}()
		wantCollected(t, last)
		runtime.KeepAlive(lock)
	})
	t.Run("of a cancelled context", func(t *testing.T) {
		t.Parallel()
		type key struct{}
		lock := hold(t, &fakeLease{}, time.Hour)
		p := func() weak.Pointer[[64]byte] {
			big := new([64]byte)
			_, cancel := lock.Context(context.WithValue(t.Context(), key{}, big))
			cancel()
			return weak.Make(big)
		}()
		wantCollected(t, p)
		runtime.KeepAlive(lock)
	})
	t.Run("of a released lock", func(t *testing.T) {
		t.Parallel()
		p := func() weak.Pointer[locker.Lock] {
			lock := hold(t, &fakeLease{}, time.Hour)
			lock.Done() // starts the timer
			wantError(t, "Release", lock.Release(t.Context()))
			return weak.Make(lock)
		}()
		wantCollected(t, p)
	})
	t.Run("of a lock that was dropped", func(t *testing.T) {
		t.Parallel()
		p := func() weak.Pointer[locker.Lock] {
			lock := hold(t, &fakeLease{}, time.Hour)
			_, _ = lock.Err(), lock.Owner()
			return weak.Make(lock)
		}()
		wantCollected(t, p)
	})
}

func wantCollected[T any](t *testing.T, p weak.Pointer[T]) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); p.Value() != nil; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is still in memory")
		}
		runtime.GC()
	}
}
