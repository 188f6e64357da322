//realtime:ok each test runs in a bubble, by eachStrategy or newBench

package keylock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

var wantsOne = settings{replicas: 1}

func TestAcquireThatNoReplicaHasIsGivenBack(t *testing.T) {
	eachCase(t, wantsOne, map[string]bool{"plain": false, "fenced": true}, func(t *testing.T, b *bench, fenced bool) {
		b.frozen.Store(true)
		wantShortfall(t, check.ErrOf(b.Acquire(t.Context(), locker.Request{Name: name, Fenced: fenced})))
		b.wantFree(t)
		b.frozen.Store(false)
		wantNone(t, b.acquire(t, locker.Request{Fenced: fenced}).Release(t.Context()))
		b.wantFree(t)
	})
}

// The repeated send finds its own token and writes nothing: a WAIT behind it proves nothing.
func TestAcquireFoundToBeDoneIsConfirmed(t *testing.T) {
	eachCase(t, wantsOne, map[string][]faultdriver.Fault{
		"reply lost":                     {{Lose: true}},
		"two replies lost":               {{Lose: true}, {Lose: true}},
		"reply of the confirmation lost": {{Lose: true}, {}, {Lose: true}},
	}, func(t *testing.T, b *bench, plan []faultdriver.Fault) {
		req := locker.Request{Name: name, Fenced: true}
		b.drv.Then(plan...)
		wantNone(t, locker.Must(b.Acquire(t.Context(), req)).Release(t.Context()))
		sleep(2 * time.Minute) // for the clean-up: the next plan is not for it
		b.frozen.Store(true)
		b.drv.Then(plan...)
		wantShortfall(t, check.ErrOf(b.Acquire(t.Context(), req)))
		b.wantFree(t)
	})
}

func TestResumeThatNoReplicaHasIsUndone(t *testing.T) {
	tests := map[string][]faultdriver.Fault{"answered": nil, "reply lost": {{Lose: true}}}
	eachCase(t, wantsOne, tests, func(t *testing.T, b *bench, plan []faultdriver.Fault) {
		lock := b.acquire(t, locker.Request{TTL: time.Minute})
		b.frozen.Store(true)
		b.drv.Then(plan...)
		wantShortfall(t, check.ErrOf(locker.Resume(t.Context(), b, lock.Handle())))
		b.frozen.Store(false)
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		wantNone(t, lock.Renew(t.Context(), 0))
		wantNone(t, locker.Must(locker.Resume(t.Context(), b, lock.Handle())).Release(t.Context()))
	})
}

func TestRenewThatNoReplicaHasKeepsTheDeadline(t *testing.T) {
	eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
		lock := b.acquire(t, locker.Request{TTL: time.Minute, Fenced: true})
		before := lock.Deadline()
		time.Sleep(10 * time.Second) //nolint:forbidigo // fake time
		b.frozen.Store(true)
		wantShortfall(t, lock.Renew(t.Context(), 0))
		if lock.Err() != nil || !lock.Deadline().Equal(before) {
			t.Errorf("after the renewal: %v, Deadline moved by %v", lock.Err(), lock.Deadline().Sub(before))
		}
		b.frozen.Store(false)
		// Even a renewal without a change at the server must be written to count.
		wantNone(t, lock.Renew(t.Context(), time.Second))
		wantNone(t, lock.Renew(t.Context(), 0))
		check.AtLeast(t, "time by which the Deadline moved", lock.Deadline().Sub(before), 9*time.Second)
		wantNone(t, lock.Release(t.Context()))
	})
}

func TestNoReplicaIsAskedWhereNoneIsWanted(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		b.frozen.Store(true)
		lock := b.acquire(t, locker.Request{Fenced: true})
		wantNone(t, lock.Renew(t.Context(), 0))
		wantNone(t, lock.Release(t.Context()))
	})
}

func TestReleaseAndRefusalNeedNoReplica(t *testing.T) {
	eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
		lock := b.acquire(t, locker.Request{Owner: "first"})
		b.frozen.Store(true)
		_, err := b.Acquire(t.Context(), locker.Request{Name: name, NoWait: true, Owner: "second"})
		wantIs(t, err, locker.ErrNotAcquired)
		wantNone(t, lock.Release(t.Context()))
		b.wantFree(t)
	})
}

func TestUpgradeThatNoReplicaHasIsOpen(t *testing.T) {
	tests := map[string][]faultdriver.Fault{"answered": nil, "reply lost": {{Lose: true}}}
	eachCase(t, wantsOne, tests, func(t *testing.T, b *bench, plan []faultdriver.Fault) {
		lock, err := b.Acquire(t.Context(), locker.Request{Name: name, Mode: locker.Shared})
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		wantNone(t, err)
		b.frozen.Store(true)
		b.drv.Then(plan...)
		err = lock.Upgrade(t.Context())
		wantIs(t, err, locker.ErrUnknownOutcome, locker.ErrNotReplicated)
		if lock.Mode() != locker.Shared || lock.Err() != nil {
			t.Errorf("it is held %v, %v", lock.Mode(), lock.Err())
		}
		wantNone(t, lock.Downgrade(t.Context()))
		b.frozen.Store(false)
		wantNone(t, lock.Upgrade(t.Context()))
		check.Equal(t, "mode after an upgrade", lock.Mode(), locker.Exclusive)
		wantNone(t, lock.Release(t.Context()))
	})
}

// A change of the note that no replica has acknowledged does not keep the next one from being sent.
func TestNoteBehindAShortfall(t *testing.T) {
	eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
		lock := b.acquire(t, locker.Request{TTL: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.drv.Then(faultdriver.Fault{Hang: true})
		err := lock.SetNote(ctx, "first")
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		wantIs(t, err, locker.ErrUnknownOutcome)
		b.frozen.Store(true)
		wantShortfall(t, lock.SetNote(t.Context(), "second"))
		b.frozen.Store(false)
		check.Equal(t, "note", locker.Must(locker.Inspect(t.Context(), b.Locker, name)).Note, "second")
		wantNone(t, lock.Release(t.Context()))
	})
}

// A refused WAIT ends the attempt: a resend would run the script again, and its WAIT would be
// refused again.
func TestAcquireWhoseWaitIsRefused(t *testing.T) {
	eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
		refused := &driver.WaitError{Err: &driver.ServerError{Text: "NOPERM no WAIT for you"}}
		b.drv.Driver = refuses{b.drv.Driver, refused}
		b.drv.Acks = nil
		start := time.Now()
		_, err := b.Acquire(t.Context(), locker.Request{Name: name})
		check.Equal(t, "time that it took", time.Since(start), 0)
		wantIs(t, err, locker.ErrUnknownOutcome, refused)
		check.Equal(t, fmt.Sprintf("Transient(%v)", err), driver.Transient(err), false)
		b.wantFree(t)
	})
}

// refuses runs scripts, and reports their WAIT as refused.
type refuses struct {
	driver.Driver
	err error
}

func (r refuses) EvalAcked(ctx context.Context, s *driver.Script, keys, args []string, _ int, _ time.Duration) (driver.Reply, int, error) {
	if _, err := r.Eval(ctx, s, keys, args); err != nil {
		return driver.Reply{}, 0, err
	}
	return driver.Reply{}, 0, r.err
}

func TestReplicasGetHalfOfWhatIsLeft(t *testing.T) {
	eachStrategy(t, settings{replicas: 1, attempt: 2 * time.Second, within: 1500 * time.Millisecond}, func(t *testing.T, b *bench) {
		b.frozen.Store(true)
		for limit, want := range map[time.Duration]time.Duration{
			time.Minute: 1500 * time.Millisecond, 2 * time.Second: 1500 * time.Millisecond, time.Second: 500 * time.Millisecond,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			_, err := b.Acquire(ctx, locker.Request{Name: name})
			cancel()
			if short, ok := errors.AsType[*locker.ReplicaError](err); !ok || short.Within != want {
				t.Errorf("with %v left: %v, want one within %v", limit, err, want)
			}
			b.wantFree(t)
		}
	})
}

// bare is a driver without waits for replicas.
type bare struct{ driver.Driver }

func (bare) EvalAcked(
	ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration,
) (driver.Reply, int, error) {
	return new(adapter.Base).EvalAcked(ctx, s, keys, args, replicas, timeout)
}

func TestReplicasThatCannotBeHad(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, s := range strategies {
		for what, tt := range map[string]struct {
			settings
			drv  driver.Driver
			want error
		}{
			"negative":             {settings{replicas: -1}, b.drv, locker.ErrInvalid},
			"negative timeout":     {settings{replicas: 1, within: -time.Second}, b.drv, locker.ErrInvalid},
			"under a millisecond":  {settings{replicas: 1, within: time.Microsecond}, b.drv, locker.ErrInvalid},
			"as long as attempts":  {settings{replicas: 1, attempt: time.Second, within: time.Second}, b.drv, locker.ErrInvalid},
			"longer than attempts": {settings{replicas: 1, within: time.Minute}, b.drv, locker.ErrInvalid},
			"attempts too short":   {settings{replicas: 1, attempt: time.Millisecond}, b.drv, locker.ErrInvalid},
			"fitting":              {settings{replicas: 3, attempt: time.Second, within: time.Second - 1}, b.drv, nil},
		} {
			if _, err := s.new(tt.drv, tt.settings); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%s, %s: error %v, want %v", s.name, what, err, tt.want)
			}
		}
		l := locker.Must(s.new(b.drv, settings{replicas: 1, within: 500 * time.Millisecond}))
		b.drv.Then()
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Second}) // its attempts have 333 ms
		wantIs(t, err, locker.ErrInvalid)
		l = locker.Must(s.new(bare{b.drv}, wantsOne))
		_, err = l.Acquire(t.Context(), locker.Request{Name: name})
		wantIs(t, err, errors.ErrUnsupported)
		if want := "the driver (go-redis) cannot wait for replicas"; !strings.Contains(err.Error(), want) || driver.Transient(err) {
			t.Errorf("%s: %v, transient: %v; want %q", s.name, err, driver.Transient(err), want)
		}
		check.Equal(t, s.name+": commands", b.drv.Sent(), 0)
	}
}

func TestWaiterOutlastsAShortfall(t *testing.T) {
	eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
		l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{})))
		b.frozen.Store(true)
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 5 * time.Second})
		wantIs(t, err, locker.ErrNotReplicated, locker.ErrMaxWait)
		time.AfterFunc(5*time.Second, func() { b.frozen.Store(false) })
		start := time.Now()
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: time.Minute}))
		check.Within(t, "time until the acquire", time.Since(start), 5*time.Second, 10*time.Second)
		wantNone(t, lock.Release(t.Context()))
	})
}

func TestWatchdogOutlastsAShortfall(t *testing.T) {
	eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
		l := locker.Chain(b.Locker, locker.Must(watchdog.New(watchdog.Config{})))
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, TTL: 30 * time.Second}))
		b.frozen.Store(true)
		time.Sleep(25 * time.Second) //nolint:forbidigo // fake time
		b.frozen.Store(false)
		time.Sleep(25 * time.Second) //nolint:forbidigo // fake time
		check.Error(t, "the replica came back in time", lock.Err())
		b.frozen.Store(true)
		before := lock.Deadline()
		<-lock.Done()
		if now := time.Now(); now.Before(before) || now.After(before.Add(time.Second)) {
			t.Errorf("it ended %v after its Deadline", now.Sub(before))
		}
		wantIs(t, lock.Err(), locker.ErrLost, locker.ErrNotReplicated) // why it was not renewed
	})
}
