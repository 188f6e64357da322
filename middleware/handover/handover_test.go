package handover_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/lockerrors"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/handover"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := handover.New(handover.Config{Tenure: -1})
	check.Is(t, err, locker.ErrInvalid)
	_, err = locker.Must(handover.New(handover.Config{}))(nil).Acquire(t.Context(), locker.Request{Name: name})
	check.Is(t, err, locker.ErrInvalid)
}

// A release passes the lock on to the next in line, without a command. The new Lock is a hold of
// its own, with its own events.
func TestHandOver(t *testing.T) {
	inProcess(t, func(p process) {
		first := p.acquire(locker.Request{})
		waiting := []*result{p.wait(p.Context(), locker.Request{}), p.wait(p.Context(), locker.Request{})}
		check.Advance(ms)
		p.release(first)
		second := p.lock(waiting[0])
		if waiting[1].done {
			p.Error("two hold the lock")
		}
		if second.Owner() == first.Owner() || !second.Deadline().Equal(first.Deadline()) || second.Err() != nil {
			p.Errorf("got %v until %v, err %v; after %v until %v", second, second.Deadline(), second.Err(), first, first.Deadline())
		}
		check.EqualSlices(p.T, "woken", waiting[0].woken, []locktrace.WokenInfo{
			{Name: name, Mode: "exclusive", By: locktrace.ByHandOver, Waited: ms, From: first.Owner()},
		})
		check.Is(p.T, first.Release(p.Context()), locker.ErrReleased)
		check.Is(p.T, first.Renew(p.Context(), 0), locker.ErrReleased)
		p.release(second)
		third := p.lock(waiting[1])
		p.sent("acquire")
		check.OK(p.T, third.Renew(p.Context(), time.Minute))
		check.Equal(p.T, "lease", time.Until(third.Deadline()), time.Minute)
		p.release(third)
		p.sent("renew", "release")
		check.EqualSlices(p.T, "events", waiting[1].events, []string{"acquired", "renewed", "released"})
		p.acquire(locker.Request{})
		p.sent("acquire")
	})
}

// Without a hand-over the server gets the release, and the waiter acquires.
func TestNoHandOver(t *testing.T) {
	type test struct {
		holder, waiter locker.Request
		before         func(p process, held *locker.Lock)
	}
	inProcesses(t, map[string]test{
		"an owner that waits":      {waiter: locker.Request{Owner: "me"}},
		"an owner that holds":      {holder: locker.Request{Owner: "me"}},
		"another TTL":              {waiter: locker.Request{TTL: time.Minute}},
		"a minimum hold":           {waiter: locker.Request{MinHold: time.Second}},
		"a token where none is":    {waiter: locker.Request{Fenced: true}},
		"a shared request":         {waiter: locker.Request{Mode: locker.Shared}},
		"a shared hold":            {holder: locker.Request{Mode: locker.Shared}},
		"a Handle in other hands":  {before: func(_ process, held *locker.Lock) { held.Handle() }},
		"a lease that nearly ends": {before: func(process, *locker.Lock) { check.Advance(8 * time.Second) }},
		"a downgrade": {before: func(p process, held *locker.Lock) {
			check.OK(p.T, held.Downgrade(p.Context()))
		}},
	}, func(p process, tt test) {
		held := p.acquire(tt.holder)
		waiter := p.wait(p.Context(), tt.waiter)
		if tt.before != nil {
			tt.before(p, held)
		}
		p.s.log = nil
		check.OK(p.T, held.Release(p.Context()))
		synctest.Wait()
		check.Advance(2 * ms)
		p.release(p.lock(waiter))
		p.sent("release", "acquire", "release")
	})
}

// Tenure bounds the hand-overs, however many wait here. The next waiter asks the server.
func TestEndOfATenure(t *testing.T) {
	inProcess(t, func(p process) {
		p.l = handingOver(p.s, 10*ms)
		first := p.acquire(locker.Request{})
		second, third := p.wait(p.Context(), locker.Request{}), p.wait(p.Context(), locker.Request{})
		check.Advance(9 * ms)
		p.release(first)
		p.sent("acquire")
		check.Advance(ms)
		p.release(p.lock(second))
		check.Advance(ms)
		p.release(p.lock(third))
		p.sent("release", "acquire", "release")
		check.Equal(p.T, "hand-over after the tenure", third.handedOver(), false)
	})
}

// The Handle of a handed-over lock names no hold.
func TestHandleAfterAHandOver(t *testing.T) {
	inProcess(t, func(p process) {
		held := p.acquire(locker.Request{})
		waiter := p.wait(p.Context(), locker.Request{})
		p.release(held)
		lock := p.lock(waiter)
		stale, now := held.Handle().Info().Token, lock.Handle().Info().Token
		if stale == "" || stale == now || now != p.s.value {
			p.Errorf("the old Handle has the token %q, the new one %q, the server %q", stale, now, p.s.value)
		}
	})
}

// If a waiter gives up just as the lock is handed over to it, it or another waiter gets the lock.
func TestGivingUpAtAHandOver(t *testing.T) {
	inProcess(t, func(p process) {
		for range 200 {
			held := p.acquire(locker.Request{})
			ctx, cancel := context.WithCancel(p.Context())
			waiter, next := p.wait(ctx, locker.Request{}), p.wait(p.Context(), locker.Request{})
			go cancel()
			p.release(held)
			if waiter.err == nil {
				p.release(p.lock(waiter))
			}
			p.release(p.lock(next))
			if p.s.value != "" {
				p.Fatal("the lock is held")
			}
		}
	})
}

// A waiter that gives up learns the holder, and why it gave up. The next one takes over its task.
func TestGivingUp(t *testing.T) {
	type test struct {
		held func(p process) // nil: this process holds it
		want string
	}
	inProcesses(t, map[string]test{
		"behind the holder": {nil, `holdfast: acquire "job": lock is held by another, note "first", for 9s at most unless renewed; ` +
			`gave up after 1s behind others of this process, without an attempt: MaxWait passed`},
		"behind one that asks": {func(p process) { p.wait(p.Context(), locker.Request{MaxWait: time.Minute}) },
			`holdfast: acquire "job": lock is held by another; gave up after 1s behind others of this process, without an attempt: MaxWait passed`},
	}, func(p process, tt test) {
		if tt.held == nil {
			p.acquire(locker.Request{Note: "first"})
		} else {
			locker.Must(p.s.Acquire(p.Context(), locker.Request{Name: name}))
			tt.held(p)
		}
		r := p.wait(p.Context(), locker.Request{MaxWait: time.Second})
		check.Advance(time.Second)
		check.Is(p.T, r.err, locker.ErrNotAcquired, locker.ErrMaxWait)
		text := r.err.Error()
		if held, ok := errors.AsType[*locker.ContentionError](r.err); ok && held.Owner != "" { // it is random
			text = strings.Replace(text, `, owner "`+held.Owner+`"`, "", 1)
		}
		check.Equal(p.T, "text", text, tt.want)
		cause := errors.New("no time")
		ctx, cancel := context.WithCancelCause(p.Context())
		r = p.wait(ctx, locker.Request{})
		cancel(cause)
		synctest.Wait()
		check.Is(p.T, r.err, locker.ErrNotAcquired, context.Canceled, cause)
	})
}

// A waiter that gives up learns the note as the holder changed it. A note whose change failed is not
// the holder's, nor is one whose change ended after a hand-over.
func TestGivingUpAfterSetNote(t *testing.T) {
	inProcess(t, func(p process) {
		learns := func(want string) {
			p.Helper()
			r := p.wait(p.Context(), locker.Request{MaxWait: ms})
			check.Advance(ms)
			held, ok := errors.AsType[*locker.ContentionError](r.err)
			if !ok || held.Note != want {
				p.Errorf("got %v, want the note %q", r.err, want)
			}
		}
		held := p.acquire(locker.Request{Note: "first"})
		check.OK(p.T, held.SetNote(p.Context(), "second"))
		learns("second")
		canceled, cancel := context.WithCancel(p.Context())
		cancel()
		check.Is(p.T, held.SetNote(canceled, "third"), context.Canceled)
		learns("second")
		waiter := p.wait(p.Context(), locker.Request{Note: "next"})
		p.s.latency = 10 * ms
		go func() { _ = held.SetNote(p.Context(), "late") }()
		check.Advance(ms)
		p.release(held)
		next := p.lock(waiter)
		check.Advance(20 * ms)
		learns("next")
		p.release(next)
	})
}

// A request that gives up behind the asking waiter learns what that waiter knows: the holder, or
// that the server does not answer. The error reads the same with hand-overs and without.
func TestGivingUpReadsTheSame(t *testing.T) {
	t.Parallel()
	type test struct {
		server    func() locker.Locker
		want      string
		contended bool
	}
	for what, tt := range map[string]test{
		"another process holds it": {
			func() locker.Locker {
				server := lockertest.New()
				locker.Must(server.Acquire(context.Background(), locker.Request{Name: name, Owner: "other", Note: "long", TTL: time.Minute}))
				return server
			},
			`holdfast: acquire "job": lock is held by another, owner "other", note "long", for 57s at most unless renewed; ` +
				`gave up after 3s behind others of this process, without an attempt: `, true,
		},
		"the server does not answer": {
			func() locker.Locker {
				return locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) {
					elapse(500 * ms)
					return nil, lockerrors.NewAttemptError("10.0.0.1:6379", 500*ms, context.DeadlineExceeded)
				})
			},
			`holdfast: acquire "job": no answer from 10.0.0.1:6379 in 3s (0 attempts)`, false,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := tt.server()
				for _, l := range []locker.Locker{locker.Chain(server, locker.Must(retry.New(retry.Config{}))), handingOver(server, ms)} {
					p := process{t, nil, l}
					ctx, cancel := context.WithCancel(t.Context())
					leader := p.wait(t.Context(), locker.Request{MaxWait: 4 * time.Second})
					late, cancelled := p.wait(t.Context(), locker.Request{MaxWait: 3 * time.Second}), p.wait(ctx, locker.Request{})
					check.Advance(3 * time.Second)
					cancel()
					check.Advance(2 * time.Second)
					for _, r := range []*result{late, cancelled} {
						if !strings.HasPrefix(text(r.err), tt.want) || errors.Is(r.err, locker.ErrNotAcquired) != tt.contended {
							t.Errorf("got %v, want %s..., ErrNotAcquired: %v", r.err, tt.want, tt.contended)
						}
					}
					check.Is(t, late.err, locker.ErrMaxWait)
					check.Is(t, cancelled.err, context.Canceled)
					check.Is(t, leader.err, locker.ErrMaxWait)
					if held, ok := server.(*lockertest.Locker); ok {
						held.Forget(name)
						locker.Must(held.Acquire(t.Context(), locker.Request{Name: name, Owner: "other", Note: "long", TTL: time.Minute}))
					}
				}
			})
		})
	}
}

// The rest of MaxWait bounds the pause between two tenures and the attempts after it. The error
// covers the whole wait.
func TestMaxWaitAfterTheLine(t *testing.T) {
	type test struct {
		maxWait, release time.Duration
		want             string
	}
	inProcesses(t, map[string]test{
		"in the pause": {50 * ms, 30 * ms, "gave up after 50ms and "},
		"after it":     {time.Second, 900 * ms, "gave up after 1s and "},
	}, func(p process, tt test) {
		p.l = handingOver(p.s, ms)
		p.s.fail = func(kind lease.OpKind) error {
			if kind == lease.OpRelease {
				elapse(25 * ms) // so the pause lasts for 100 ms
			}
			return nil
		}
		held, start := p.acquire(locker.Request{}), time.Now()
		waiter := p.wait(p.Context(), locker.Request{MaxWait: tt.maxWait})
		check.Advance(tt.release - 25*ms)
		check.OK(p.T, held.Release(p.Context()))
		locker.Must(p.s.Acquire(p.Context(), locker.Request{Name: name}))
		check.Advance(time.Until(start.Add(tt.maxWait)))
		synctest.Wait()
		if !waiter.done {
			p.Fatalf("it still waits after %v", tt.maxWait)
		}
		check.Is(p.T, waiter.err, locker.ErrNotAcquired, locker.ErrMaxWait)
		if text := waiter.err.Error(); !strings.Contains(text, tt.want) {
			p.Errorf("got %q, want ...%q...", text, tt.want)
		}
	})
}

// If a leader gives up in the pause after a tenure, the next one waits for the end of the pause.
func TestPauseOutlivesItsLeader(t *testing.T) {
	inProcess(t, func(p process) {
		p.l = handingOver(p.s, ms)
		p.s.fail = func(kind lease.OpKind) error {
			if kind == lease.OpRelease {
				elapse(25 * ms) // so the pause lasts for 100 ms
			}
			return nil
		}
		held := p.acquire(locker.Request{})
		ctx, cancel := context.WithCancel(p.Context())
		p.wait(ctx, locker.Request{})
		second := p.wait(p.Context(), locker.Request{})
		check.Advance(2 * ms)
		check.OK(p.T, held.Release(p.Context()))
		check.Advance(50 * ms)
		cancel()
		check.Advance(50*ms - 1)
		p.sent("acquire", "release")
		check.Advance(1)
		p.lock(second)
		p.s.fail = nil
		p.release(second.lock)
	})
}

// If the asking waiter gives up, the next one in the line asks.
func TestLeaderGivesUp(t *testing.T) {
	inProcess(t, func(p process) {
		p.s.ttl = time.Minute
		other := locker.Must(p.s.Acquire(p.Context(), locker.Request{Name: name}))
		leader := p.wait(p.Context(), locker.Request{MaxWait: time.Second})
		next, last := p.wait(p.Context(), locker.Request{MaxWait: time.Hour}), p.wait(p.Context(), locker.Request{MaxWait: 3 * time.Second})
		check.Advance(time.Second)
		check.Is(p.T, leader.err, locker.ErrMaxWait)
		check.Advance(2 * time.Second)
		check.Is(p.T, last.err, locker.ErrMaxWait)
		check.OK(p.T, other.Release(p.Context()))
		check.Advance(time.Second)
		p.release(p.lock(next))
	})
}

// A nested acquire does not wait behind its own hold, whoever waits. AcquireAll and DoAll pass no
// waiter, and release their locks.
func TestNestedAndSeveral(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := process{t, nil, handingOver(lockertest.New(), time.Hour)}
		both := []locker.Request{{Name: name}, {Name: "other"}}
		first := p.acquire(locker.Request{})
		second, third := p.wait(t.Context(), locker.Request{}), make(chan error)
		go func() {
			third <- locker.DoAll(t.Context(), p.l, both, func(context.Context, *locker.Locks) error { return nil })
		}()
		synctest.Wait()
		p.release(first)
		lock := p.lock(second)
		ctx, cancel := lock.Context(t.Context())
		defer cancel()
		start := time.Now()
		_, err := p.l.Acquire(ctx, locker.Request{Name: name})
		check.Is(t, err, locker.ErrNested)
		err = locker.DoAll(ctx, p.l, both, func(context.Context, *locker.Locks) error { return nil })
		check.Is(t, err, locker.ErrNested)
		check.Took(t, "the nested acquires", start, 0)
		p.release(lock)
		check.OK(t, <-third)
	})
}

// A request that must not pass its process's waiters does not, even between two tenures.
func TestBehindWaiters(t *testing.T) {
	inProcess(t, func(p process) {
		p.l = handingOver(p.s, 10*ms)
		first := p.acquire(locker.Request{})
		second := p.wait(p.Context(), locker.Request{})
		check.Advance(20 * ms)
		p.release(first) // second pauses for 1 ms
		_, err := p.l.Acquire(lease.WithWaiting(p.Context(), lease.Waiting{Behind: true}), locker.Request{Name: name, NoWait: true})
		check.Is(p.T, err, locker.ErrNotAcquired)
		check.Advance(ms)
		p.release(p.lock(second))
	})
}

// Close of the driver ends the waits, and nothing is handed over after it: never do two hold.
func TestClose(t *testing.T) {
	inProcess(t, func(p process) {
		closed, closeDriver := context.WithCancel(p.Context())
		p.l = handingOver(closable{p.s, closed}, time.Hour)
		held := p.acquire(locker.Request{})
		waiting := []*result{p.wait(p.Context(), locker.Request{}), p.wait(p.Context(), locker.Request{})}
		closeDriver()
		synctest.Wait()
		for _, r := range waiting {
			check.Is(p.T, r.err, locker.ErrClosed)
			check.IsNot(p.T, r.err, locker.ErrNotAcquired)
		}
		check.OK(p.T, held.Err())
		late := p.wait(p.Context(), locker.Request{})
		check.Is(p.T, late.err, locker.ErrClosed)
		p.release(held)
		p.sent("acquire", "release")
	})
}

// Once every Release and Acquire has returned, nothing is left for Close to keep, even if tokens
// were being reserved for a waiter that gave up.
func TestCloseAfterwards(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		network := memnet.New()
		network.Latency = ms
		m := memredis.Start(t, network)
		drv := clients.OpenMemory(t, m)
		strategy := locker.Must(single.New(clients.OpenMemory(t, m), single.Config{}))
		p := process{t, nil, handingOver(locker.Must(single.New(drv, single.Config{})), time.Hour)}
		held := p.acquire(locker.Request{Fenced: true})
		ctx, cancel := context.WithCancel(t.Context())
		waiter := p.wait(ctx, locker.Request{Fenced: true})
		time.AfterFunc(ms/2, cancel)
		check.OK(t, held.Release(t.Context()))
		check.Advance(ms / 2)
		check.Is(t, waiter.err, context.Canceled)
		check.OK(t, drv.Close())
		check.Equal(t, "held", locker.Must(strategy.Inspect(t.Context(), name)).Held, false)
	})
}

// Close waits for an AcquireAll with a handed-over lock, and releases it.
func TestCloseDuringAcquireAll(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		drv := clients.OpenMemory(t, m)
		strategy := locker.Must(single.New(clients.OpenMemory(t, m), single.Config{}))
		l := handingOver(locker.Must(single.New(drv, single.Config{})), time.Hour)
		mine := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "mine"}))
		other := locker.Must(strategy.Acquire(t.Context(), locker.Request{Name: "other"}))
		failed := make(chan error)
		go func() {
			_, err := locker.AcquireAll(t.Context(), l, []locker.Request{{Name: "mine"}, {Name: "other"}})
			failed <- err
		}()
		check.Advance(10 * ms)
		check.OK(t, mine.Release(t.Context()))
		check.Advance(10 * ms)
		closed := make(chan error)
		go func() { closed <- drv.Close() }()
		check.Is(t, <-failed, locker.ErrClosed)
		check.OK(t, <-closed)
		check.Equal(t, "held", locker.Must(strategy.Inspect(t.Context(), "mine")).Held, false)
		check.OK(t, other.Release(t.Context()))
	})
}

// A request in the line gets the number of waiters ahead, as in the queue of retry.
func TestQueued(t *testing.T) {
	inProcesses(t, map[string]int{"behind a holder": 0, "behind one that asks": 1}, func(p process, ahead int) {
		if ahead == 0 {
			p.acquire(locker.Request{})
		} else {
			locker.Must(p.s.Acquire(p.Context(), locker.Request{Name: name}))
			p.wait(p.Context(), locker.Request{MaxWait: time.Second})
		}
		for i := range 2 {
			var queued []int
			ctx := locktrace.With(p.Context(), &locktrace.Trace{Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
				queued = append(queued, info.Queued)
			}})
			p.wait(ctx, locker.Request{MaxWait: time.Second})
			check.EqualSlices(p.T, "queued", queued, []int{ahead + i})
		}
		check.Advance(time.Second)
	})
}

// closable is a store that can be closed.
type closable struct {
	*store
	closed context.Context //nolint:containedctx // of the driver
}

func (c closable) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if c.closed.Err() != nil {
		return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: driver.ErrClosed}
	}
	return c.store.Acquire(ctx, req)
}

func (c closable) OnClose(f func()) (stop func() bool) { return context.AfterFunc(c.closed, f) }

// Locks with several holders, or held several times by one owner, are not handed over.
func TestStrategiesWithoutHandOvers(t *testing.T) {
	t.Parallel()
	for what, strategy := range map[string]locker.Locker{
		"a semaphore": lockertest.NewSemaphore(2), "reentrant": reentrant{lockertest.New()},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := process{t, nil, handingOver(strategy, time.Hour)}
				held := []*locker.Lock{p.acquire(locker.Request{})}
				if what == "a semaphore" {
					held = append(held, p.acquire(locker.Request{}))
				}
				waiter := p.wait(t.Context(), locker.Request{})
				for _, lock := range held {
					p.release(lock)
				}
				p.release(p.lock(waiter))
				check.Equal(t, "handed over", waiter.handedOver(), false)
			})
		})
	}
}

type reentrant struct{ *lockertest.Locker }

func (reentrant) Traits() lease.Traits { return lease.Traits{Reentrant: true} }
