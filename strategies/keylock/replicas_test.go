//realtime:ok each test runs in a bubble, by eachStrategy or newBench

package keylock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

var wantsOne = settings{replicas: 1}

func TestAcquireThatNoReplicaHasIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, fenced := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "fenced"}[fenced], func(t *testing.T) {
			eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
				b.frozen.Store(true)
				_, err := b.Acquire(t.Context(), locker.Request{Name: name, Fenced: fenced})
				wantShortfall(t, err)
				b.wantFree(t)
				b.frozen.Store(false)
				lock := b.acquire(t, locker.Request{Fenced: fenced})
				wantNone(t, lock.Release(t.Context()))
				b.wantFree(t)
			})
		})
	}
}

// The repeated send finds its own token and writes nothing: what WAIT says behind it is of no
// account.
func TestAcquireFoundToBeDoneIsConfirmed(t *testing.T) {
	t.Parallel()
	for what, plan := range map[string][]faultdriver.Fault{
		"reply lost": {{Lose: true}}, "two replies lost": {{Lose: true}, {Lose: true}}, "reply of the confirmation lost": {{Lose: true}, {}, {Lose: true}},
	} {
		for _, frozen := range []bool{true, false} {
			t.Run(what+map[bool]string{true: ", frozen", false: ""}[frozen], func(t *testing.T) {
				eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
					b.frozen.Store(frozen)
					b.drv.Then(plan...)
					lock, err := b.Acquire(t.Context(), locker.Request{Name: name, Fenced: true})
					if frozen {
						wantShortfall(t, err)
						b.wantFree(t)
						return
					}
					wantNone(t, err)
					wantNone(t, lock.Release(t.Context()))
				})
			})
		}
	}
}

func TestResumeThatNoReplicaHasIsUndone(t *testing.T) {
	t.Parallel()
	for what, plan := range map[string][]faultdriver.Fault{"answered": nil, "reply lost": {{Lose: true}}} {
		t.Run(what, func(t *testing.T) {
			eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
				lock := b.acquire(t, locker.Request{TTL: time.Minute})
				b.frozen.Store(true)
				b.drv.Then(plan...)
				_, err := locker.Resume(t.Context(), b, lock.Handle())
				wantShortfall(t, err)
				b.frozen.Store(false)
				time.Sleep(time.Second) //nolint:forbidigo // fake time
				wantNone(t, lock.Renew(t.Context(), 0))
				resumed, err := locker.Resume(t.Context(), b, lock.Handle())
				wantNone(t, err)
				wantNone(t, resumed.Release(t.Context()))
			})
		})
	}
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
		// Not even one that changes nothing at the server may count unless it was written.
		wantNone(t, lock.Renew(t.Context(), time.Second))
		wantNone(t, lock.Renew(t.Context(), 0))
		if got := lock.Deadline().Sub(before); got < 9*time.Second {
			t.Errorf("the Deadline moved by %v", got)
		}
		if lock.Hold().Batch() != nil {
			t.Error("its renewals travel with others, where no WAIT speaks for them")
		}
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
	t.Parallel()
	for what, plan := range map[string][]faultdriver.Fault{"answered": nil, "reply lost": {{Lose: true}}} {
		t.Run(what, func(t *testing.T) {
			eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
				lock, err := b.Acquire(t.Context(), locker.Request{Name: name, Mode: locker.Shared})
				if errors.Is(err, errors.ErrUnsupported) {
					return
				}
				wantNone(t, err)
				b.frozen.Store(true)
				b.drv.Then(plan...)
				err = lock.Upgrade(t.Context())
				wantIs(t, err, locker.ErrUnknownOutcome)
				wantIs(t, err, locker.ErrNotReplicated)
				if lock.Mode() != locker.Shared || lock.Err() != nil {
					t.Errorf("it is held %v, %v", lock.Mode(), lock.Err())
				}
				wantNone(t, lock.Downgrade(t.Context()))
				b.frozen.Store(false)
				wantNone(t, lock.Upgrade(t.Context()))
				if lock.Mode() != locker.Exclusive {
					t.Error("it is not held exclusively after an upgrade")
				}
				wantNone(t, lock.Release(t.Context()))
			})
		})
	}
}

// A refused WAIT ends the attempt: sent again the script would run again, and the WAIT be refused
// again.
func TestAcquireWhoseWaitIsRefused(t *testing.T) {
	eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
		refused := &driver.WaitError{Err: &driver.ServerError{Text: "NOPERM no WAIT for you"}}
		b.drv.Driver = refuses{b.drv.Driver, refused}
		b.drv.Acks = nil
		start := time.Now()
		_, err := b.Acquire(t.Context(), locker.Request{Name: name})
		if took := time.Since(start); took > 0 {
			t.Errorf("it went on for %v", took)
		}
		wantIs(t, err, locker.ErrUnknownOutcome)
		wantIs(t, err, refused)
		if driver.Transient(err) {
			t.Errorf("error %v passes", err)
		}
		b.wantFree(t)
	})
}

// refuses runs scripts, and says of their WAIT that it was refused.
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

func (r refuses) Background(f func(context.Context)) bool {
	return r.Driver.(driver.Backgrounder).Background(f)
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

// bare is a driver that can do no more than it must.
type bare struct{ driver.Driver }

func TestReplicasThatCannotBeHad(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, s := range strategies {
		for what, tt := range map[string]struct {
			settings
			drv  driver.Driver
			want error
		}{
			"a driver without":     {wantsOne, bare{b.drv}, errors.ErrUnsupported},
			"none wanted":          {settings{}, bare{b.drv}, nil},
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
		if b.drv.Sent() != 0 {
			t.Errorf("%s: something was sent", s.name)
		}
	}
}

func TestWaiterOutlastsAShortfall(t *testing.T) {
	eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
		l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{})))
		b.frozen.Store(true)
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 5 * time.Second})
		wantIs(t, err, locker.ErrNotReplicated)
		wantIs(t, err, locker.ErrMaxWait)
		time.AfterFunc(5*time.Second, func() { b.frozen.Store(false) })
		start := time.Now()
		lock, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: time.Minute})
		wantNone(t, err)
		if took := time.Since(start); took < 5*time.Second || took > 10*time.Second {
			t.Errorf("acquired after %v, want one soon after the replica is back", took)
		}
		wantNone(t, lock.Release(t.Context()))
	})
}

func TestWatchdogOutlastsAShortfall(t *testing.T) {
	eachStrategy(t, wantsOne, func(t *testing.T, b *bench) {
		l := locker.Chain(b.Locker, locker.Must(watchdog.New(watchdog.Config{})))
		lock, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: 30 * time.Second})
		wantNone(t, err)
		b.frozen.Store(true)
		time.Sleep(25 * time.Second) //nolint:forbidigo // fake time
		b.frozen.Store(false)
		time.Sleep(25 * time.Second) //nolint:forbidigo // fake time
		if lock.Err() != nil {
			t.Errorf("lost though the replica came back in time: %v", lock.Err())
		}
		b.frozen.Store(true)
		before := lock.Deadline()
		<-lock.Done()
		if now := time.Now(); now.Before(before) || now.After(before.Add(time.Second)) {
			t.Errorf("it ended %v after its Deadline", now.Sub(before))
		}
		wantIs(t, lock.Err(), locker.ErrLost)
		wantIs(t, lock.Err(), locker.ErrNotReplicated) // why it was not renewed
	})
}
