package single_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// times returns the same fault n times.
func times(n int, f fault) []fault {
	plan := make([]fault, n)
	for i := range plan {
		plan[i] = f
	}
	return plan
}

// Contract 9: no renewal begins between the Deadline and the end of the lease at the server.
func TestRenewSendsNothingAfterDone(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		lock := b.acquire(t, locker.Request{TTL: 30 * time.Second}) // its Deadline is at 29.698 s
		done := lock.Done()
		time.Sleep(28200 * time.Millisecond) //nolint:forbidigo // fake time
		b.drv.Then(times(9, fault{Err: errCut})...)
		match(t, lock.Renew(t.Context(), 0), []error{locker.ErrUnknownOutcome}, nil) // the tenth would be sent at 29.835 s
		<-done
		if left := b.m.TTL(name); left > time.Second {
			t.Errorf("a renewal extended a lock after its Done closed: %v left", left)
		}
	})
}

// Contract 9: a renewal in flight ends with the lock.
func TestRenewEndsWithTheLock(t *testing.T) {
	t.Parallel()
	for ending, end := range map[string]func(*testing.T, *locker.Lock){
		"released": func(t *testing.T, lock *locker.Lock) { match(t, lock.Release(t.Context()), nil, nil) },
		"lost":     func(_ *testing.T, lock *locker.Lock) { lock.Hold().MarkLost(errCut) },
	} {
		t.Run(ending, func(t *testing.T) {
			run(t, single.Config{}, func(t *testing.T, b bench) {
				lock := b.acquire(t, locker.Request{TTL: 30 * time.Second})
				plan := times(3, fault{Err: errCut})
				if ending == "released" {
					plan = append(plan, fault{}) // the release itself
				}
				b.drv.Then(append(plan, times(100, fault{Err: errCut})...)...)
				renewed := make(chan error, 1)
				go func() { renewed <- lock.Renew(context.Background(), 0) }()
				time.Sleep(25 * time.Millisecond) //nolint:forbidigo // fake time
				end(t, lock)
				before := b.drv.Sent()
				match(t, <-renewed, []error{locker.ErrNotHeld}, []error{locker.ErrUnknownOutcome})
				time.Sleep(20 * time.Second) //nolint:forbidigo // fake time
				if n := b.drv.Sent() - before; n > 0 {
					t.Errorf("%d renewals were sent after the lock had ended", n)
				}
				b.drv.Then()
			})
		})
	}
}

// Contract 7: another strategy takes the name between the lost reply and the resend.
func TestReleaseOfAKeyThatChangedItsType(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		lock := b.acquire(t, locker.Request{})
		b.drv.Driver = afterDelete{b.drv.Driver, func() { b.m.HSet(name, "kind", "rw") }}
		b.drv.Then(fault{Lose: true})
		match(t, lock.Release(t.Context()), nil, nil)

		b.m.Del(name)
		lock = b.acquire(t, locker.Request{})
		b.m.Del(name)
		b.m.HSet(name, "kind", "rw")
		match(t, lock.Release(t.Context()), []error{locker.ErrLost}, []error{locker.ErrUnknownOutcome})
	})
}

// afterDelete calls a function once a script has replied 1.
type afterDelete struct {
	driver.Driver
	then func()
}

func (d afterDelete) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	r, err := d.Driver.Eval(ctx, s, keys, args)
	if n, intErr := r.Int(0); err == nil && intErr == nil && n == 1 {
		d.then()
	}
	return r, err
}

func (d afterDelete) Background(f func(context.Context)) bool {
	return d.Driver.(driver.Backgrounder).Background(f)
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
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		match(t, b.drv.Close(), nil, nil)
		match(t, <-done, []error{locker.ErrUnknownOutcome, locker.ErrClosed}, []error{locker.ErrNotAcquired})
		synctest.Wait()
	})
}

// The TTL of a foreign key may exceed the range of a Duration.
func TestRefusedByAKeyThatLivesLong(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		b.drv.Driver = longLived{b.drv.Driver}
		_, err := b.Acquire(t.Context(), locker.Request{Name: name})
		if held, ok := errors.AsType[*locker.ContentionError](err); !ok || held.RetryAfter < 24*time.Hour {
			t.Errorf("%v; want a refusal that says to wait for long", err)
		}
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
			_, err := b.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})
			match(t, err, []error{locker.ErrInvalid}, nil)
			_, err = single.New(b.drv, single.Config{TTL: ttl})
			match(t, err, []error{locker.ErrInvalid}, nil)
		}
		if b.drv.Sent() != 0 {
			t.Error("something was sent")
		}
		match(t, b.acquire(t, locker.Request{TTL: 3 * time.Millisecond}).Release(t.Context()), nil, nil)
	})
}

// The value of the key shows that the hold is gone, whatever became of an earlier send: the outcome
// is known.
func TestLossIsNoUnknownOutcome(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		lock := b.acquire(t, locker.Request{})
		b.m.Del(name)
		if _, err := b.m.Push(name, "theirs"); err != nil {
			t.Fatal(err)
		}
		b.drv.Then(fault{Err: errCut})
		match(t, lock.Renew(t.Context(), 0), []error{locker.ErrLost}, []error{locker.ErrUnknownOutcome})
	})
}
