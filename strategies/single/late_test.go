//realtime:ok each test runs in a bubble, by run of tools_test.go

package single_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Contract 9: no renewal begins between the Deadline and the end of the lease at the server.
func TestRenewSendsNothingAfterDone(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		lock := b.acquire(t, locker.Request{TTL: 30 * time.Second}) // its Deadline is at 29.698 s
		done := lock.Done()
		sleep(28200 * time.Millisecond)
		b.drv.Then(slices.Repeat([]fault{{Err: errCut}}, 9)...)
		check.Is(t, lock.Renew(t.Context(), 0), locker.ErrUnknownOutcome) // the tenth would be sent at 29.835 s
		<-done
		check.AtMost(t, "TTL of a lock after its Done closed", b.m.TTL(name), time.Second)
	})
}

// Contract 9: a renewal in flight ends with the lock.
func TestRenewEndsWithTheLock(t *testing.T) {
	cut := fault{Err: errCut}
	type test struct {
		plan []fault // until it has ended
		end  func(*testing.T, *locker.Lock)
	}
	eachRun(t, single.Config{}, map[string]test{
		"released": {[]fault{cut, cut, cut, {}}, func(t *testing.T, lock *locker.Lock) { check.OK(t, lock.Release(t.Context())) }},
		"lost":     {[]fault{cut, cut, cut}, func(_ *testing.T, lock *locker.Lock) { lock.Hold().MarkLost(errCut) }},
	}, func(t *testing.T, b bench, tt test) {
		lock := b.acquire(t, locker.Request{TTL: 30 * time.Second})
		b.drv.Then(append(tt.plan, slices.Repeat([]fault{cut}, 100)...)...)
		renewed := make(chan error, 1)
		go func() { renewed <- lock.Renew(context.Background(), 0) }()
		sleep(25 * time.Millisecond)
		tt.end(t, lock)
		before := b.drv.Sent()
		only(t, <-renewed, locker.ErrNotHeld, locker.ErrUnknownOutcome)
		sleep(20 * time.Second)
		check.Equal(t, "renewals after the lock had ended", b.drv.Sent()-before, 0)
		b.drv.Then()
	})
}

// Commands in flight when the driver is closed end with an unknown outcome.
func TestCloseWhileAnAcquireIsOpen(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		b.drv.Then(fault{Lose: true}, fault{Hang: true})
		done := make(chan error, 1)
		go func() {
			_, err := b.Acquire(context.Background(), locker.Request{Name: name, TTL: time.Hour})
			done <- err
		}()
		sleep(time.Second)
		check.OK(t, b.drv.Close())
		err := <-done
		check.Is(t, err, locker.ErrClosed)
		only(t, err, locker.ErrUnknownOutcome, locker.ErrNotAcquired)
		synctest.Wait()
	})
}

// The TTL of a foreign key may exceed the range of a Duration. Waiters and Watch poll at their usual
// intervals then.
func TestKeyThatLivesLong(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		inner, left := b.drv.Driver, int64(math.MaxInt64/1000)
		b.drv.Driver = longLived{inner, []any{int64(0), "foreign", left}}
		refusal := locktest.Refusal(t, check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name})))
		check.AtLeast(t, "RetryAfter", refusal.RetryAfter, 24*time.Hour)

		const patience = 2500 * time.Millisecond
		b.drv.Then()
		waits := locker.Must(retry.New(retry.Config{Policy: func() backoff.BackOff {
			return backoff.NewConstantBackOff(time.Second)
		}}))(b.Locker)
		check.Is(t, check.ErrOf(waits.Acquire(t.Context(), locker.Request{Name: name, MaxWait: patience})), locker.ErrMaxWait)
		check.AtMost(t, "commands of a waiter", b.drv.Sent(), 10)

		synctest.Wait() // nothing uses the driver
		b.drv.Driver = longLived{inner, []any{int64(1), "foreign", left, int64(1), int64(0), int64(0)}}
		b.drv.Then()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for state, err := range locker.Watch(ctx, b.Locker, name, 0) {
			check.OK(t, err)
			check.Equal(t, "it is held", state.Held, true)
		}
		check.Equal(t, "polls of Watch", b.drv.Sent(), 3)
	})
}

// longLived is the driver of a server with a key that lives long. A command takes a millisecond.
type longLived struct {
	driver.Driver
	reply []any // of a script
}

func (longLived) SetNX(context.Context, string, string, time.Duration) (bool, error) {
	sleep(time.Millisecond)
	return false, nil
}

func (l longLived) Eval(context.Context, *driver.Script, []string, []string) (driver.Reply, error) {
	sleep(time.Millisecond)
	return driver.NewReply(l.reply)
}

// A TTL used up by the allowance for drift is refused before anything is sent.
func TestTTLThatCannotBeHeld(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		for _, ttl := range []time.Duration{time.Millisecond, 2 * time.Millisecond, 3*time.Millisecond - 1} {
			check.Is(t, check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})), locker.ErrInvalid)
			check.Is(t, check.ErrOf(single.New(b.drv, single.Config{TTL: ttl})), locker.ErrInvalid)
		}
		check.Equal(t, "commands", b.drv.Sent(), 0)
		check.OK(t, b.acquire(t, locker.Request{TTL: 3 * time.Millisecond}).Release(t.Context()))
	})
}

// Contract 9: neither a shorter renewal nor one of unknown outcome changes the lease.
func TestRenew(t *testing.T) {
	run(t, single.Config{AttemptTimeout: time.Second}, func(t *testing.T, b bench) {
		lock := b.acquire(t, locker.Request{TTL: 10 * time.Second, Fenced: true})
		deadline := lock.Deadline()

		check.OK(t, lock.Renew(t.Context(), time.Second))
		if !lock.Deadline().Equal(deadline) || b.m.TTL(name) != 10*time.Second {
			t.Errorf("a shorter renew left Deadline %v and TTL %v", lock.Deadline(), b.m.TTL(name))
		}

		b.drv.Then(fault{Hang: true}, fault{Hang: true}, fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		err := lock.Renew(ctx, 0)
		check.Is(t, err, context.DeadlineExceeded)
		only(t, err, locker.ErrUnknownOutcome, locker.ErrNotHeld)
		if !lock.Deadline().Equal(deadline) || lock.Err() != nil {
			t.Errorf("a renew of unknown outcome left Deadline %v, error %v", lock.Deadline(), lock.Err())
		}

		b.drv.Then(fault{Lose: true})
		check.OK(t, lock.Renew(t.Context(), 0))
		check.AtLeast(t, "time until the Deadline", time.Until(lock.Deadline()), 9800*time.Millisecond)
	})
}

// meanwhile is a driver that calls a function before the next script is sent.
type meanwhile struct {
	driver.Driver
	before func()
}

func (m *meanwhile) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	return m.Driver.Eval(ctx, s, keys, args)
}

// A renewal with the value from before a change of the note loses no lock, unless the lock is gone.
func TestNoteBesideRenewal(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		drv := &meanwhile{Driver: b.drv}
		l := locker.Must(single.New(drv, single.Config{}))
		for name, lost := range map[string]bool{"noted": false, "gone": true} {
			lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute}))
			drv.before = func() {
				check.OK(t, lock.SetNote(t.Context(), "new"))
				if lost {
					b.m.Del(name)
				}
			}
			until := lock.Deadline()
			sleep(time.Second)
			err := lock.Hold().Renew(t.Context())
			if errors.Is(err, locker.ErrLost) != lost || (err != nil) != lost {
				t.Errorf("%s: the renewal returned %v", name, err)
			}
			check.Equal(t, name+": the lock was renewed", lock.Deadline().After(until), !lost)
			_ = lock.Release(t.Context())
		}
		check.Equal(t, "keys that are left", strings.Join(b.m.Keys(), " "), "")
	})
}

// A change of the note and an acquire, both without an answer, leave a hold with one of two values.
// A clean-up of the one does not end that of the other.
func TestCleanUpOfTwoValues(t *testing.T) {
	t.Parallel()
	for hangs := range 4 {
		for range 10 {
			t.Run(fmt.Sprintf("%d clean-ups hang", hangs), func(t *testing.T) {
				run(t, single.Config{}, func(t *testing.T, b bench) {
					b.drv.Then(fault{Lose: true})
					lock := b.acquire(t, locker.Request{TTL: time.Minute})
					b.drv.Then(fault{Lose: true}, fault{Hang: true})
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					check.Is(t, lock.SetNote(ctx, "new"), locker.ErrUnknownOutcome)
					ended, end := context.WithCancel(t.Context())
					end()
					b.drv.Then(slices.Repeat([]fault{{Hang: true}}, 1+hangs)...)
					only(t, lock.Release(ended), locker.ErrUnknownOutcome, locker.ErrLost)
					b.wantFree(t, 25*time.Second)
					sleep(time.Minute) // the clean-up of the other value
				})
			})
		}
	}
}
