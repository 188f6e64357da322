package single_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
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

// The TTL of a foreign key may exceed the range of a Duration.
func TestRefusedByAKeyThatLivesLong(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		b.drv.Driver = longLived{b.drv.Driver}
		refusal := locktest.Refusal(t, check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name})))
		check.AtLeast(t, "RetryAfter", refusal.RetryAfter, 24*time.Hour)
	})
}

type longLived struct{ driver.Driver }

func (longLived) SetNX(context.Context, string, string, time.Duration) (bool, error) {
	return false, nil
}

func (longLived) Eval(context.Context, *driver.Script, []string, []string) (driver.Reply, error) {
	return driver.NewReply([]any{int64(0), "foreign", int64(math.MaxInt64 / 1000)})
}

// A TTL that the allowance for drift uses up is refused before anything is sent.
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
