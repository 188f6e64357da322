package rwhash_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

var fenced = locker.Request{Fenced: true}

// Readers get the last writer's token. Every writer gets a larger one, also after an upgrade.
func TestFence(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		one, two := b.read(t, fenced), b.read(t, fenced) // before any writer
		if one.Fence() == 0 || two.Fence() != one.Fence() {
			t.Errorf("the first readers have %d and %d", one.Fence(), two.Fence())
		}
		plain := b.read(t, locker.Request{})
		release(t, plain, two)
		match(t, one.Upgrade(t.Context()))
		upgraded := one.Fence()
		if plain.Fence() != 0 || upgraded <= two.Fence() {
			t.Errorf("not fenced %d, upgraded from %d to %d", plain.Fence(), two.Fence(), upgraded)
		}
		match(t, one.Downgrade(t.Context()))
		three := b.read(t, fenced)
		if one.Fence() != upgraded || three.Fence() != upgraded {
			t.Errorf("after the downgrade %d, another reader %d, want %d", one.Fence(), three.Fence(), upgraded)
		}
		release(t, one, three)
		last := upgraded
		for range 3 {
			w := b.write(t, fenced)
			if w.Fence() <= last {
				t.Errorf("a writer has %d after %d", w.Fence(), last)
			}
			resumed, err := locker.Resume(t.Context(), b, w.Handle())
			match(t, err)
			if last = resumed.Fence(); last <= w.Fence() {
				t.Errorf("resumed with %d after %d", last, w.Fence())
			}
			release(t, resumed)
			release(t, b.write(t, locker.Request{})) // one that is not fenced in between
			r := b.read(t, fenced)
			again, err := locker.Resume(t.Context(), b, r.Handle())
			match(t, err)
			if r.Fence() != last || again.Fence() != last {
				t.Errorf("a reader has %d, resumed %d; want the last writer's %d", r.Fence(), again.Fence(), last)
			}
			release(t, again)
		}
		b.free(t)
	})
}

// The token of a reader or a writer can be raised while it holds.
func TestRaiseFence(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		raise := func(lock *locker.Lock, to int64) (lease.Term, error) {
			return leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: to})
		}
		for _, mode := range []locker.Mode{locker.Shared, locker.Exclusive} {
			lock := b.have(t, locker.Request{Name: name, Mode: mode, Fenced: true, TTL: time.Second})
			high := lock.Fence() + time.Hour.Microseconds()
			for _, to := range []int64{high, high, 1} {
				term, err := raise(lock, to)
				match(t, err)
				if term.Fence != high {
					t.Errorf("%v: raised to %d, it is %d; want %d", mode, to, term.Fence, high)
				}
			}
			for _, to := range []int64{math.MaxInt64, 0, -1} {
				_, err := raise(lock, to)
				match(t, err, locker.ErrInvalid)
			}
			sleep(time.Second)
			_, err := raise(lock, high+1)
			match(t, err, locker.ErrLost)
			next := b.write(t, fenced)
			if next.Fence() != high+1 {
				t.Errorf("the next writer has %d after %d", next.Fence(), high)
			}
			release(t, next)
		}
		plain := b.read(t, locker.Request{})
		_, err := raise(plain, 1)
		match(t, err, errors.ErrUnsupported)
		release(t, plain)
	})
}

// Every operation on the counter extends its life, also a reader's, and none shortens it.
func TestCounterOutlivesTheLock(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		const long, day = 10 * 24 * time.Hour, 24 * time.Hour
		release(t, b.write(t, locker.Request{Fenced: true, TTL: time.Second}))
		r := b.read(t, locker.Request{Fenced: true, TTL: 2 * day})
		if kept := b.m.TTL(counter); kept != 3*day {
			t.Errorf("with a reader the counter lives for %v, want a day more than its lease of 48h", kept)
		}
		match(t, r.Renew(t.Context(), long))
		for _, step := range []func() error{
			func() error { return r.Upgrade(t.Context()) },
			func() error { return r.Downgrade(t.Context()) },
			func() (err error) { r, err = locker.Resume(t.Context(), b, r.Handle()); return err },
			func() error { return r.Renew(t.Context(), time.Second) },
			func() error { release(t, b.read(t, locker.Request{Fenced: true, TTL: time.Second})); return nil },
		} {
			match(t, step())
			if kept := b.m.TTL(counter); kept < long+day {
				t.Errorf("the counter lives for %v", kept)
			}
		}
		release(t, r)
	})
}

// A fence counter that is not a number is a permanent error: no one retries, and nothing is
// written.
func TestFenceCounterThatIsNoNumber(t *testing.T) {
	t.Parallel()
	for found, set := range map[string]func(b bench){
		"text":     func(b bench) { _ = b.m.Set(counter, "soon") },
		"a list":   func(b bench) { _, _ = b.m.Push(counter, "1") },
		"too much": func(b bench) { _ = b.m.Set(counter, "9007199254740991") },
	} {
		t.Run(found, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{})))
				unwritten := func(what string, do func() error) {
					t.Helper()
					before, start := b.m.Dump(), time.Now()
					if err := do(); !errors.Is(err, driver.ErrPermanent) || errors.Is(err, locker.ErrNotAcquired) || time.Since(start) > 0 {
						t.Errorf("%s: %v after %v; want an error that does not pass, at once", what, err, time.Since(start))
					}
					if after := b.m.Dump(); after != before {
						t.Errorf("%s wrote\n%s, and now there is\n%s", what, before, after)
					}
				}
				acquire := func(mode locker.Mode) func() error {
					return func() error {
						_, err := l.Acquire(t.Context(), locker.Request{Name: name, Mode: mode, Fenced: true})
						return err
					}
				}
				r := b.read(t, fenced)
				b.m.Del(counter)
				set(b)
				unwritten("a reader", acquire(locker.Shared))
				unwritten("a resume", func() error { _, err := locker.Resume(t.Context(), b, r.Handle()); return err })
				unwritten("an upgrade", func() error { return r.Upgrade(t.Context()) })
				match(t, r.Renew(t.Context(), 0))
				release(t, r)
				unwritten("a reader of what is free", acquire(locker.Shared))
				unwritten("a writer", acquire(locker.Exclusive))
				release(t, b.write(t, locker.Request{}))
				b.free(t)
			})
		})
	}
}

// A raise with a send that may still be executed has an unknown outcome, whatever the key of the
// counter holds when a later send is answered. The late send raises the counter or changes nothing.
func TestRaiseFenceBesideACounterThatIsNoNumber(t *testing.T) {
	t.Parallel()
	for what, gone := range map[string]bool{"held when it is executed": false, "released before": true} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				lock := b.write(t, fenced)
				high := lock.Fence() + time.Hour.Microseconds()
				raise := func() error {
					_, err := leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: high})
					return err
				}
				match(t, b.m.Set(counter, "soon"))
				if err := raise(); !errors.Is(err, driver.ErrPermanent) || errors.Is(err, locker.ErrUnknownOutcome) {
					t.Errorf("%v, want an error that is sure and does not pass", err)
				}
				b.drv.Then(fault{Late: time.Second})
				match(t, raise(), locker.ErrUnknownOutcome, driver.ErrPermanent)
				b.m.Del(counter)
				if gone {
					release(t, lock)
				}
				b.drv.WaitLate()
				next := high + 1
				if gone {
					next = 0
				} else {
					release(t, lock)
				}
				if w := b.write(t, fenced); next > 0 && w.Fence() != next || w.Fence() <= lock.Fence() || next == 0 && w.Fence() >= high {
					t.Errorf("the next writer has %d after %d, raised to %d", w.Fence(), lock.Fence(), high)
				}
			})
		})
	}
}
