package handover_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/handover"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// The error of a lost lock reads the same with hand-overs and without, also after a hand-over, and
// with a watchdog inside or outside.
func TestLossesReadTheSame(t *testing.T) {
	t.Parallel()
	none := locker.Middleware(func(l locker.Locker) locker.Locker { return l })
	hands, waits := locker.Must(handover.New(handover.Config{Tenure: time.Hour})), locker.Must(retry.New(retry.Config{}))
	type loss struct {
		dog  *watchdog.Config // nil: none
		lose func(server *lockertest.Locker, lock *locker.Lock) error
	}
	done := func(lock *locker.Lock) error { <-lock.Done(); return nil }
	for what, tt := range map[string]loss{
		"gone at a renewal": {nil, func(server *lockertest.Locker, lock *locker.Lock) error {
			server.Forget(name)
			return lock.Renew(context.Background(), 0)
		}},
		"gone at the release": {nil, func(server *lockertest.Locker, _ *locker.Lock) error {
			server.Forget(name)
			return nil
		}},
		"a renewal fails": {nil, func(server *lockertest.Locker, lock *locker.Lock) error {
			server.FailRenew(io.EOF)
			return errors.Join(lock.Renew(context.Background(), 0), done(lock))
		}},
		"ended by the strategy": {nil, func(server *lockertest.Locker, lock *locker.Lock) error {
			server.Expire(name)
			return done(lock)
		}},
		"its Deadline passes": {nil, func(_ *lockertest.Locker, lock *locker.Lock) error { return done(lock) }},
		"renewals fail": {&watchdog.Config{}, func(server *lockertest.Locker, lock *locker.Lock) error {
			for range 100 {
				server.FailRenew(io.EOF)
			}
			return done(lock)
		}},
		"a watchdog finds it gone": {&watchdog.Config{}, func(server *lockertest.Locker, lock *locker.Lock) error {
			server.Forget(name)
			return done(lock)
		}},
		"held for MaxHold": {&watchdog.Config{MaxHold: time.Minute}, func(_ *lockertest.Locker, lock *locker.Lock) error {
			return done(lock)
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dog := none
				if tt.dog != nil {
					dog = locker.Must(watchdog.New(*tt.dog))
				}
				var want []string
				for i, chain := range [][]locker.Middleware{{dog, none, waits}, {hands, dog, waits}, {dog, hands, waits}} {
					for _, handed := range []bool{false, true} {
						server := lockertest.New()
						p := process{t, nil, locker.Chain(server, chain...)}
						start, lock := time.Now(), p.acquire(locker.Request{})
						if handed && i > 0 {
							waiter := p.wait(t.Context(), locker.Request{})
							p.release(lock)
							lock = p.lock(waiter)
						}
						var told error
						lock.AfterDone(func(err error) { told = err })
						errLose, took := tt.lose(server, lock), time.Since(start)
						if tt.dog != nil {
							took = 0 // its renewals have a jitter
						}
						released := lock.Release(t.Context())
						synctest.Wait()
						got := []string{text(errLose), took.String(), text(released), text(lock.Err()), text(told)}
						if want == nil {
							want = got
						}
						if !slices.Equal(got, want) {
							t.Errorf("chain %d, handed over: %v\n got %q\nwant %q", i, handed, got, want)
						}
					}
				}
			})
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The server is asked while a lock is handed on. Once it answers that the hold has ended, as after
// a Break, the holder gets the loss, and hand-overs end.
func TestLossIsNoticed(t *testing.T) {
	inProcess(t, func(p process) {
		held := p.acquire(locker.Request{})
		p.s.latency = ms
		broken, after := time.Time{}, 0
		for i := range 200 {
			waiter := p.wait(p.Context(), locker.Request{})
			check.Advance(2 * ms)
			if i == 50 {
				p.s.lose()
				broken = time.Now()
			}
			if err := held.Err(); err != nil {
				check.Is(p.T, err, locker.ErrLost)
				check.AtMost(p.T, "time until the loss is known", time.Since(broken), 50*ms)
				check.Advance(2 * ms)
				next := p.lock(waiter)
				check.Equal(p.T, "handed over", waiter.handedOver(), false)
				check.Is(p.T, held.Release(p.Context()), locker.ErrLost)
				p.release(next)
				return
			}
			if !broken.IsZero() {
				after++
			}
			p.release(held)
			held = p.lock(waiter)
		}
		p.Errorf("the loss was not noticed in %d hand-overs", after)
	})
}

// While the server does not answer, hand-overs go on for 50 ms, and the hold ends with its lease,
// without delay.
func TestUnansweredChecks(t *testing.T) {
	inProcess(t, func(p process) {
		acquired := time.Now()
		held := p.acquire(locker.Request{})
		silent := make(chan struct{})
		defer close(silent)
		p.s.fail = func(lease.OpKind) error {
			<-silent
			return io.EOF
		}
		start, handed := time.Now(), true
		for handed {
			waiter := p.wait(p.Context(), locker.Request{MaxWait: time.Second})
			check.Advance(2 * ms)
			go func() { _ = held.Release(context.Background()) }()
			synctest.Wait()
			if handed = waiter.handedOver(); handed {
				held = p.lock(waiter)
			}
		}
		check.Equal(p.T, "time until the release is sent", time.Since(start), 52*ms)
		if held.Deadline().After(acquired.Add(p.s.ttl)) {
			p.Errorf("the lease of the last holder ends at %v", held.Deadline())
		}
	})
}

// The server is asked by one renewal at a time, only while the lock is handed on, and never for
// less than the rest of the lease.
func TestChecks(t *testing.T) {
	inProcess(t, func(p process) {
		p.s.latency = 10 * ms
		var inFlight, most int
		var asked []time.Duration
		p.l = handingOver(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			lock, err := p.s.Acquire(ctx, req)
			if err == nil {
				lock.Hold().Wrap(func(l lease.Lease) lease.Lease { return counted{l, &inFlight, &most, &asked} })
			}
			return lock, err
		}), time.Hour)
		held := p.acquire(locker.Request{})
		check.Advance(time.Second)
		p.sent("acquire")
		check.OK(p.T, held.Renew(p.Context(), time.Hour))
		for range 100 {
			waiter := p.wait(p.Context(), locker.Request{})
			check.Advance(2 * ms)
			p.release(held)
			held = p.lock(waiter)
		}
		check.Advance(time.Minute)
		check.Equal(p.T, "renewals at a time", most, 1)
		check.Within(p.T, "renewals", len(asked), 6, 9)
		check.AtLeast(p.T, "the shortest", slices.Min(asked), time.Hour-time.Second)
		p.release(held)
		check.Advance(time.Second)
	})
}

type counted struct {
	lease.Lease
	inFlight, most *int
	asked          *[]time.Duration
}

func (c counted) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if op.Kind == lease.OpRenew {
		*c.inFlight++
		*c.most = max(*c.most, *c.inFlight)
		*c.asked = append(*c.asked, op.TTL)
		defer func() { *c.inFlight-- }()
	}
	return c.Lease.Do(ctx, op)
}

// A check renews the lease of a holder with less than half of it left, even if the server answered
// a reservation of tokens a moment ago.
func TestChecksRenewTheHolder(t *testing.T) {
	inProcesses(t, map[string]bool{"without a token": false, "fenced": true}, func(p process, fenced bool) {
		held := p.acquire(locker.Request{Fenced: fenced})
		waiter := p.wait(p.Context(), locker.Request{Fenced: fenced})
		check.Advance(6 * time.Second)
		p.s.log = nil
		p.release(held)
		lock := p.lock(waiter)
		check.Advance(ms)
		check.AtLeast(p.T, "lease", time.Until(lock.Deadline()), 9*time.Second)
		p.release(lock)
	})
}

// While a holder keeps others of its process waiting, the server is asked each second. This neither
// extends the lease nor is reported to the holder; the waiters learn that the hold has ended.
func TestHoldThatEndedElsewhere(t *testing.T) {
	inProcess(t, func(p process) {
		first := p.wait(p.Context(), locker.Request{})
		held := p.lock(first)
		end := held.Deadline()
		check.Advance(2500 * ms)
		p.sent("acquire")
		waiter := p.wait(p.Context(), locker.Request{})
		check.Advance(4500 * ms)
		p.sent("renew", "renew", "renew", "renew")
		if !held.Deadline().Equal(end) || !p.s.until.Equal(end) {
			p.Errorf("the lease ends at %v, at the server at %v, want %v", held.Deadline(), p.s.until, end)
		}
		p.s.lose()
		check.Advance(time.Second + 2*ms)
		check.Is(p.T, held.Err(), locker.ErrLost)
		next := p.lock(waiter)
		check.Is(p.T, held.Release(p.Context()), locker.ErrLost)
		check.EqualSlices(p.T, "events", first.events, []string{"acquired", "lost", "released"})
		check.Advance(5 * time.Second)
		p.release(next)
	})
}
