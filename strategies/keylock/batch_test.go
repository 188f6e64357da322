package keylock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/logging"
	"github.com/holdfast-go/holdfast/middleware/metrics"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/middleware/tracing"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// batchTTL is that of the locks that batches acquire.
const batchTTL = time.Minute

// batchOf returns requests for n names of one slot.
func batchOf(n int) (reqs []locker.Request) {
	for i := range n {
		reqs = append(reqs, locker.Request{Name: fmt.Sprintf("{x}%d", i), TTL: batchTTL})
	}
	return reqs
}

// eachBatch runs f for each strategy that acquires several locks by one command.
func eachBatch(t *testing.T, f func(t *testing.T, b *bench)) {
	t.Helper()
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		if b.strategy() != "exclusive" {
			f(t, b)
		}
	})
}

func (b *bench) strategy() string {
	source, _ := locker.As[lease.Sourced](b.Locker)
	return source.Source().Strategy
}

// wantKeys demands the keys that the server has.
func (b *bench) wantKeys(t *testing.T, want ...string) {
	t.Helper()
	for end := time.Now().Add(time.Second); !slices.Equal(b.m.Keys(), want); time.Sleep(time.Millisecond) { //nolint:forbidigo // fake time
		if time.Now().After(end) {
			t.Fatalf("the server has the keys %q, want %q", b.m.Keys(), want)
		}
	}
}

func wantFailed(t *testing.T, err error, name string) {
	t.Helper()
	if oe, ok := errors.AsType[*locker.OpError](err); !ok || oe.Op != "acquire" || oe.Name != name {
		t.Errorf("error %v, want one of the acquire of %q", err, name)
	}
}

func TestBatchIsOneCommand(t *testing.T) {
	eachBatch(t, func(t *testing.T, b *bench) {
		const n = 8
		reqs := batchOf(n)
		for i := range reqs {
			reqs[i].Fenced, reqs[i].Note, reqs[i].TTL = i%2 == 0, fmt.Sprint("note ", i), batchTTL+time.Duration(i)*time.Second
		}
		var made []string
		ctx := locktrace.With(t.Context(), &locktrace.Trace{
			Attempt: func(_ context.Context, info locktrace.AttemptInfo) {
				if info.Sends != 1 || info.Err != nil {
					t.Errorf("reported %+v", info)
				}
			},
			Acquired: func(_ context.Context, info locktrace.AcquiredInfo) { made = append(made, info.Name) },
		})
		b.drv.Then()
		locks, err := locker.AcquireAll(ctx, b.Locker, reqs)
		wantNone(t, err)
		if b.drv.Sent() != 1 {
			t.Errorf("sent %d commands, want 1", b.drv.Sent())
		}
		for i, lock := range locks.All() {
			if lock.Name() != reqs[i].Name || lock.TTL() != reqs[i].TTL || (lock.Fence() > 0) != reqs[i].Fenced || made[i] != lock.Name() {
				t.Errorf("lock %d is %v, reported as of %q; want %+v", i, lock, made[i], reqs[i])
			}
			wantNone(t, lock.Renew(t.Context(), 0))
			state, err := locker.Inspect(t.Context(), b.Locker, lock.Name())
			wantNone(t, err)
			if !state.Held || state.Note != reqs[i].Note || state.Left <= batchTTL-time.Second || state.Left > reqs[i].TTL {
				t.Errorf("the server has %+v, want %+v", state, reqs[i])
			}
			_, err = b.Acquire(t.Context(), reqs[i])
			wantIs(t, err, locker.ErrNotAcquired)
		}
		wantNone(t, locks.Release(t.Context()))
		b.wantKeys(t, "{x}0:fence", "{x}2:fence", "{x}4:fence", "{x}6:fence")
	})
}

// One lock that cannot be acquired keeps all from being written, and the error is that of an
// acquire of it alone.
func TestBatchOrNone(t *testing.T) {
	for what, spoil := range map[string]func(t *testing.T, b *bench, name string){
		"another holds": func(t *testing.T, b *bench, name string) {
			_, err := b.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Hour, Owner: "other", Note: "theirs"})
			wantNone(t, err)
		},
		"another type": func(t *testing.T, b *bench, name string) {
			_, err := b.m.Push(name, "an item")
			wantNone(t, err)
		},
		"another use of the type": func(_ *testing.T, b *bench, name string) { b.m.HSet(name, "a field", "a value") },
		"no fence counter":        func(_ *testing.T, b *bench, name string) { _ = b.m.Set(name+":fence", "text") },
	} {
		t.Run(what, func(t *testing.T) {
			eachBatch(t, func(t *testing.T, b *bench) {
				const n = 4
				for k := range n {
					reqs := batchOf(n)
					for i := range reqs {
						reqs[i].NoWait, reqs[i].Fenced = true, true
					}
					spoil(t, b, reqs[k].Name)
					before := b.m.Dump()
					b.drv.Then()
					locks, err := locker.AcquireAll(t.Context(), b.Locker, reqs)
					if locks != nil || b.drv.Sent() != 1 {
						t.Errorf("%v after %d commands, want no locks after one", locks, b.drv.Sent())
					}
					wantFailed(t, err, reqs[k].Name)
					_, alone := b.Acquire(t.Context(), reqs[k])
					if err == nil || alone == nil || err.Error() != alone.Error() || driver.CodeOf(err) != driver.CodeOf(alone) || driver.Transient(err) != driver.Transient(alone) {
						t.Errorf("error %v, want that of an acquire of it alone: %v", err, alone)
					}
					if after := b.m.Dump(); after != before {
						t.Errorf("the server has\n%swant\n%s", after, before)
					}
					b.m.FlushAll()
				}
			})
		})
	}
}

// A refusal ends a call that does not wait. Any other call then acquires in order.
func TestBatchThenInOrder(t *testing.T) {
	eachBatch(t, func(t *testing.T, b *bench) {
		l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{})))
		held := locker.Must(b.Acquire(t.Context(), locker.Request{Name: "{x}2", TTL: time.Hour}))
		released := make(chan error, 1) // the waiter may have the lock before it
		time.AfterFunc(10*time.Second, func() { released <- held.Release(context.Background()) })
		start := time.Now()
		var first []locktrace.AttemptInfo
		ctx := locktrace.With(t.Context(), &locktrace.Trace{Attempt: func(_ context.Context, info locktrace.AttemptInfo) { first = append(first, info) }})
		_, err := locker.AcquireAll(ctx, l, append(batchOf(4), locker.Request{Name: "{x}0", MaxWait: time.Second}))
		if !errors.Is(first[0].Err, locker.ErrNotAcquired) || first[0].Name != "{x}2" || first[0].Sends != 1 || first[1].Name != "{x}0" {
			t.Errorf("the first attempts were reported as %+v, want a refusal of one name", first[:2])
		}
		wantIs(t, err, locker.ErrMaxWait)
		wantIs(t, err, locker.ErrNotAcquired)
		wantFailed(t, err, "{x}2")
		locks, err := locker.AcquireAll(t.Context(), l, batchOf(4))
		wantNone(t, err)
		if took := time.Since(start); took < 10*time.Second || took > 13*time.Second {
			t.Errorf("acquired after %v, want 10s", took)
		}
		wantNone(t, locks.Release(t.Context()))
		wantNone(t, <-released)
	})
}

// Contract 4: a batch whose reply was lost is resent, and recognizes what it acquired.
func TestBatchWhoseAnswerIsLost(t *testing.T) {
	for _, tt := range []struct {
		name string
		plan []faultdriver.Fault
		from time.Duration // the Deadline counts from this long after the first send

	}{
		{name: "executed", plan: []faultdriver.Fault{{Lose: true}}},
		{name: "executed twice", plan: []faultdriver.Fault{{Lose: true}, {Lose: true}}},
		{name: "not executed", plan: []faultdriver.Fault{{Hang: true}}, from: 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachBatch(t, func(t *testing.T, b *bench) {
				reqs := batchOf(3)
				reqs[1].Fenced = true
				start := time.Now()
				b.drv.Then(tt.plan...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				locks, err := locker.AcquireAll(ctx, b.Locker, reqs)
				wantNone(t, err)
				if want := len(tt.plan) + 1; b.drv.Sent() != want {
					t.Errorf("sent %d commands, want %d", b.drv.Sent(), want)
				}
				for _, lock := range locks.All() {
					from := lock.Deadline().Sub(start) - batchTTL + batchTTL/100 + 2*time.Millisecond
					if from < tt.from || from > tt.from+20*time.Millisecond {
						t.Errorf("the Deadline counts from %v after the first send, want %v", from, tt.from)
					}
					if state, err := locker.Inspect(t.Context(), b.Locker, lock.Name()); err != nil || state.Holds != 1 {
						t.Errorf("%q has %d holds, want 1 (%v)", lock.Name(), state.Holds, err)
					}
				}
				wantNone(t, locks.Release(t.Context()))
				b.wantKeys(t, "{x}1:fence")
			})
		})
	}
}

// Contract 5: a batch that is given up leaves nothing, for each of its names.
func TestBatchGivenUpLeavesNothing(t *testing.T) {
	for name, plan := range map[string][]faultdriver.Fault{
		"executed":           {{Lose: true}, {Hang: true}},
		"executed late":      {{Late: 2 * time.Second}, {Hang: true}},
		"executed very late": {{Late: 20 * time.Second}, {Hang: true}},
		"answered late":      {{Delay: 5 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			eachBatch(t, func(t *testing.T, b *bench) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				b.drv.Then(plan...)
				_, err := locker.AcquireAll(ctx, b.Locker, batchOf(3))
				wantIs(t, err, locker.ErrUnknownOutcome)
				wantIs(t, err, context.DeadlineExceeded)
				if errors.Is(err, locker.ErrNotAcquired) || time.Until(mustDeadline(ctx)) < -time.Second {
					t.Errorf("error %v, %v after ctx ended", err, -time.Until(mustDeadline(ctx)))
				}
				wantFailed(t, err, "{x}0")
				b.drv.WaitLate()
				time.Sleep(time.Second) //nolint:forbidigo // fake time
				b.wantKeys(t)
				if other, err := b.Acquire(t.Context(), batchOf(1)[0]); err != nil {
					t.Error(err)
				} else {
					wantNone(t, other.Release(t.Context()))
				}
			})
		})
	}
}

func mustDeadline(ctx context.Context) time.Time {
	end, _ := ctx.Deadline()
	return end
}

// If another holds one of the names by the time of the resend, what the first send acquired is
// removed.
func TestBatchRefusedAtTheResend(t *testing.T) {
	eachBatch(t, func(t *testing.T, b *bench) {
		b.drv.Then(faultdriver.Fault{Lose: true}, faultdriver.Fault{Delay: 2 * time.Second})
		reqs := batchOf(3)
		reqs[0].NoWait = true
		time.AfterFunc(2*time.Millisecond, func() {
			b.m.Del("{x}1")
			_, err := b.m.Push("{x}1", "theirs")
			wantNone(t, err)
		})
		_, err := locker.AcquireAll(t.Context(), b.Locker, reqs)
		wantFailed(t, err, "{x}1")
		b.wantKeys(t, "{x}1")
	})
}

func TestBatchOfAnEndedContext(t *testing.T) {
	eachBatch(t, func(t *testing.T, b *bench) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b.drv.Then()
		_, err := locker.AcquireAll(ctx, b.Locker, batchOf(3))
		wantIs(t, err, context.Canceled)
		wantFailed(t, err, "{x}0")
		if b.drv.Sent() != 0 {
			t.Errorf("sent %d commands, want none", b.drv.Sent())
		}
	})
}

// An answer that comes after the end of one of the leases is too late for all.
func TestBatchAnsweredTooLate(t *testing.T) {
	eachStrategy(t, settings{attempt: time.Second}, func(t *testing.T, b *bench) {
		if b.strategy() == "exclusive" {
			return
		}
		reqs := batchOf(3)
		reqs[1].TTL, reqs[0].NoWait = 30*time.Millisecond, true
		b.drv.Then(faultdriver.Fault{Delay: 100 * time.Millisecond})
		_, err := locker.AcquireAll(t.Context(), b.Locker, reqs)
		wantIs(t, err, locker.ErrLost)
		wantFailed(t, err, "{x}1")
		b.wantKeys(t)
	})
}

// closingDriver counts the acquires in flight.
type closingDriver struct {
	driver.Driver
	closing  atomic.Bool
	inFlight atomic.Int64
}

func (d *closingDriver) BeginAcquire() error {
	if d.closing.Load() {
		return locker.ErrClosed
	}
	d.inFlight.Add(1)
	return nil
}
func (d *closingDriver) EndAcquire()   { d.inFlight.Add(-1) }
func (d *closingDriver) Closing() bool { return d.closing.Load() }

// Close in the middle of a batch: nothing is acquired, and nothing left.
func TestBatchWhileTheDriverCloses(t *testing.T) {
	t.Parallel()
	for _, strategy := range strategies {
		for _, when := range []string{"before", "during the command", "during the first claim", "after"} {
			if strategy.name == "exclusive" {
				continue
			}
			t.Run(strategy.name+", "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t)
					drv := &closingDriver{Driver: b.drv}
					inner := locker.Must(strategy.new(drv, settings{}))
					drv.closing.Store(when == "before")
					if when == "during the command" {
						b.drv.Then(faultdriver.Fault{Delay: time.Second})
						time.AfterFunc(time.Second/2, func() { drv.closing.Store(true) })
					}
					claims := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
						lock, err := inner.Acquire(ctx, req)
						if when == "during the first claim" {
							drv.closing.Store(true)
						}
						return lock, err
					})
					locks, err := locker.AcquireAll(t.Context(), wrapped{claims, inner}, batchOf(3))
					if when == "after" {
						wantNone(t, err)
						wantNone(t, locks.Release(t.Context()))
					} else {
						wantIs(t, err, locker.ErrClosed)
					}
					if n := drv.inFlight.Load(); n != 0 {
						t.Errorf("%d acquires are in flight", n)
					}
					b.wantKeys(t)
				})
			})
		}
	}
}

// A driver that panics in the middle of a batch, as in a hook of its client, is not kept from
// closing.
func TestBatchWhoseDriverPanics(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		for _, strategy := range strategies {
			if strategy.name != b.strategy() {
				continue
			}
			drv := &closingDriver{Driver: panickingDriver{b.drv}}
			func() {
				defer func() { _ = recover() }()
				_, err := locker.AcquireAll(t.Context(), locker.Must(strategy.new(drv, settings{})), batchOf(3))
				t.Errorf("AcquireAll returned %v, want a panic", err)
			}()
			if n := drv.inFlight.Load(); n != 0 {
				t.Errorf("%d acquires are in flight", n)
			}
		}
	})
}

// panickingDriver panics when it is to send a script.
type panickingDriver struct{ driver.Driver }

func (panickingDriver) Eval(context.Context, *driver.Script, []string, []string) (driver.Reply, error) {
	panic("in a hook")
}

// wrapped is middleware around a Locker.
type wrapped struct {
	locker.Locker
	inner locker.Locker
}

func (w wrapped) Unwrap() locker.Locker { return w.inner }

// taking is middleware that takes part in batches.
type taking struct{ wrapped }

func (w taking) AcquireBatch(ctx context.Context, reqs []locker.Request) (locker.Batch, error) {
	return w.inner.(locker.BatchAcquirer).AcquireBatch(ctx, reqs)
}

// Middleware that refuses a request, changes it, or does not pass its ctx on is as sound as with
// single acquires.
func TestBatchUnderMiddleware(t *testing.T) {
	refusal := errors.New("the middleware refuses")
	for _, tt := range []struct {
		name    string
		acquire func(ctx context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error)
		want    error
		sent    int // commands of an acquire; 0: it fails
	}{
		{"passes on", func(ctx context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error) {
			return inner.Acquire(ctx, req)
		}, nil, 1},
		{"changes a request", func(ctx context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error) {
			if req.Name == "{x}1" {
				req.Note = "changed"
			}
			return inner.Acquire(ctx, req)
		}, nil, 0},
		{"drops the values of ctx", func(_ context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error) {
			return inner.Acquire(context.Background(), req)
		}, nil, 0},
		{"refuses one", func(ctx context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error) {
			if req.Name == "{x}1" {
				return nil, refusal
			}
			return inner.Acquire(ctx, req)
		}, refusal, 0},
		{"fails behind one", func(ctx context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error) {
			lock, err := inner.Acquire(ctx, req)
			if req.Name == "{x}1" && err == nil {
				return nil, errors.Join(refusal, lock.Release(ctx))
			}
			return lock, err
		}, refusal, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachBatch(t, func(t *testing.T, b *bench) {
				l := taking{wrapped{locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
					return tt.acquire(ctx, b.Locker, req)
				}), b.Locker}}
				b.drv.Then()
				locks, err := locker.AcquireAll(t.Context(), l, batchOf(3))
				if tt.sent > 0 && b.drv.Sent() != tt.sent {
					t.Errorf("sent %d commands, want %d", b.drv.Sent(), tt.sent)
				}
				if tt.want != nil {
					wantIs(t, err, tt.want)
					wantFailed(t, err, "{x}1")
				} else {
					wantNone(t, err)
					wantNone(t, locks.Release(t.Context()))
				}
				b.wantKeys(t)
			})
		})
	}
}

// All middleware of Holdfast takes part in batches.
func TestBatchPassesThroughMiddleware(t *testing.T) {
	for name, m := range map[string]locker.Middleware{
		"watchdog": locker.Must(watchdog.New(watchdog.Config{})), "retry": locker.Must(retry.New(retry.Config{})),
		"tracing": tracing.New(tracing.Config{}), "metrics": locker.Must(metrics.New(metrics.Config{})),
		"logging": locker.Must(logging.New(logging.Config{})),
	} {
		t.Run(name, func(t *testing.T) {
			eachBatch(t, func(t *testing.T, b *bench) {
				b.drv.Then()
				locks, err := locker.AcquireAll(t.Context(), m(b.Locker), batchOf(3))
				wantNone(t, err)
				if b.drv.Sent() != 1 {
					t.Errorf("sent %d commands, want 1", b.drv.Sent())
				}
				wantNone(t, locks.Release(t.Context()))
				b.wantKeys(t)
			})
		})
	}
}

// What middleware denies is never taken, not even for a moment: a batch passes through all of it, or
// is not sent.
func TestNoBatchBehindMiddlewareThatDenies(t *testing.T) {
	denial := fmt.Errorf("not for you: %w", driver.ErrPermanent)
	eachBatch(t, func(t *testing.T, b *bench) {
		denied := 0
		l := wrapped{locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if req.Name == "{x}1" {
				denied++
				return nil, denial
			}
			return b.Acquire(ctx, req)
		}), b.Locker}
		for _, outer := range []locker.Locker{
			l, locker.Must(watchdog.New(watchdog.Config{}))(l), locker.Must(retry.New(retry.Config{}))(l),
		} {
			b.drv.Then()
			denied = 0
			_, err := locker.AcquireAll(t.Context(), outer, batchOf(2))
			wantIs(t, err, denial)
			wantFailed(t, err, "{x}1")
			if denied != 1 || b.drv.Sent() != 2 { // the acquire and the release of {x}0
				t.Errorf("denied %d times, and sent %d commands, want 1 and 2", denied, b.drv.Sent())
			}
			b.wantKeys(t)
		}
	})
}

// Names in several slots, replicas that must acknowledge, and one name alone are acquired in order.
func TestNoBatch(t *testing.T) {
	eachBatch(t, func(t *testing.T, b *bench) {
		for _, reqs := range [][]locker.Request{
			{{Name: "a"}, {Name: "b"}},
			{{Name: "{x}a"}},
		} {
			acquirer, _ := locker.As[locker.BatchAcquirer](b.Locker)
			batch, err := acquirer.AcquireBatch(t.Context(), reqs)
			if len(reqs) > 1 && (batch != nil || !errors.Is(err, errors.ErrUnsupported)) {
				t.Errorf("%v, %v; want ErrUnsupported", batch, err)
			}
			if batch != nil {
				for _, lock := range batch.Unclaimed() {
					wantNone(t, lock.Release(t.Context()))
				}
				batch.End()
			}
			locks, err := locker.AcquireAll(t.Context(), b.Locker, reqs)
			wantNone(t, err)
			wantNone(t, locks.Release(t.Context()))
			b.wantKeys(t)
		}
	})
}

// Under Fair a name that is kept for a waiter is not free for others.
func TestBatchIsFair(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(driver.Driver) (locker.Locker, error){
		"single":    func(d driver.Driver) (locker.Locker, error) { return single.New(d, single.Config{Fair: true}) },
		"reentrant": func(d driver.Driver) (locker.Locker, error) { return reentrant.New(d, reentrant.Config{Fair: true}) },
		"semaphore": func(d driver.Driver) (locker.Locker, error) { return semaphore.New(d, semaphore.Config{Permits: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.Locker = locker.Must(open(b.drv))
				reqs := batchOf(3)
				held := locker.Must(b.Acquire(t.Context(), reqs[1]))
				waiter := lease.WithWaiting(t.Context(), lease.Waiting{ID: lease.NewToken(), Since: time.Now()})
				_, err := b.Acquire(waiter, reqs[1])
				wantIs(t, err, locker.ErrNotAcquired)
				wantNone(t, held.Release(t.Context()))
				reqs[0].NoWait = true
				_, err = locker.AcquireAll(t.Context(), b.Locker, reqs)
				wantIs(t, err, locker.ErrNotAcquired)
				wantFailed(t, err, reqs[1].Name)
				lock, err := b.Acquire(waiter, reqs[1])
				wantNone(t, err)
				wantNone(t, lock.Release(t.Context()))
				locks, err := locker.AcquireAll(t.Context(), b.Locker, reqs)
				wantNone(t, err)
				wantNone(t, locks.Release(t.Context()))
				b.wantKeys(t)
			})
		})
	}
}

// What a server says of several keys alone is no reason to fail.
func TestBatchThatTheServerRefuses(t *testing.T) {
	for _, text := range []string{
		"TRYAGAIN Multiple keys request during rehashing of slot", "CROSSSLOT Keys in request don't hash to the same slot", "LOADING Redis is loading",
	} {
		t.Run(text, func(t *testing.T) {
			eachBatch(t, func(t *testing.T, b *bench) {
				reqs := batchOf(3)
				reqs[0].NoWait = true
				b.drv.Then(faultdriver.Fault{Err: &driver.ServerError{Text: text}})
				locks, err := locker.AcquireAll(t.Context(), b.Locker, reqs)
				wantNone(t, err)
				if n := b.drv.Sent(); n != 4 {
					t.Errorf("sent %d commands, want 4", n)
				}
				wantNone(t, locks.Release(t.Context()))
				b.wantKeys(t)
			})
		})
	}
}

// A batch re-enters the locks of its owner.
func TestBatchReenters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Locker = locker.Must(reentrant.New(b.drv, reentrant.Config{}))
		reqs := batchOf(3)
		outer := locker.Must(b.Acquire(t.Context(), locker.Request{Name: reqs[1].Name, Fenced: true, TTL: batchTTL}))
		ctx, cancel := outer.Context(t.Context())
		defer cancel()
		reqs[0].NoWait, reqs[1].Fenced = true, true
		b.drv.Then()
		locks, err := locker.AcquireAll(ctx, b.Locker, reqs)
		wantNone(t, err)
		if all := locks.All(); b.drv.Sent() != 1 || all[1].Owner() != outer.Owner() || all[1].Fence() != outer.Fence() || all[0].Owner() == outer.Owner() {
			t.Errorf("%d commands; owners %q, %q, of the outer lock %q; fences %d, %d",
				b.drv.Sent(), all[0].Owner(), all[1].Owner(), outer.Owner(), all[1].Fence(), outer.Fence())
		}
		for i, holds := range []int{1, 2, 1} {
			if state, err := locker.Inspect(ctx, b.Locker, reqs[i].Name); err != nil || state.Holds != holds {
				t.Errorf("%q has %d holds, want %d (%v)", reqs[i].Name, state.Holds, holds, err)
			}
		}
		wantNone(t, locks.Release(t.Context()))
		wantNone(t, outer.Err())
		wantNone(t, outer.Release(t.Context()))
		b.wantKeys(t, reqs[1].Name+":fence")
	})
}

// A batch shares locks where it is asked to, and acquires permits.
func TestBatchShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Locker = locker.Must(rwhash.New(b.drv, rwhash.Config{}))
		reqs := batchOf(3)
		reqs[0].NoWait, reqs[1].Mode, reqs[1].Fenced = true, locker.Shared, true
		reader := locker.Must(b.Acquire(t.Context(), locker.Request{Name: reqs[1].Name, Mode: locker.Shared, TTL: batchTTL, Fenced: true}))
		b.drv.Then()
		locks, err := locker.AcquireAll(t.Context(), b.Locker, reqs)
		wantNone(t, err)
		if n := b.drv.Sent(); n != 1 || locks.All()[1].Fence() != reader.Fence() {
			t.Errorf("%d commands; fences %d and %d of two readers", n, locks.All()[1].Fence(), reader.Fence())
		}
		writers := batchOf(3)
		writers[0].NoWait = true
		wantNone(t, locks.All()[0].Release(t.Context()))
		_, err = locker.AcquireAll(t.Context(), b.Locker, writers)
		wantFailed(t, err, writers[1].Name)
		wantNone(t, reader.Release(t.Context()))
		wantNone(t, locks.Release(t.Context()))
		locks, err = locker.AcquireAll(t.Context(), b.Locker, writers)
		wantNone(t, err)
		wantNone(t, locks.All()[1].Downgrade(t.Context()))
		wantNone(t, locks.Release(t.Context()))

		b.Locker = locker.Must(semaphore.New(b.drv, semaphore.Config{Permits: 3}))
		reqs = batchOf(3)
		reqs[0].NoWait, reqs[1].Permits = true, 2
		b.drv.Then()
		first, err := locker.AcquireAll(t.Context(), b.Locker, reqs)
		wantNone(t, err)
		_, err = locker.AcquireAll(t.Context(), b.Locker, reqs)
		wantFailed(t, err, reqs[1].Name)
		if state, err := locker.Inspect(t.Context(), b.Locker, reqs[2].Name); err != nil || state.Free != 2 || b.drv.Sent() != 3 {
			t.Errorf("%d permits of %q are free after %d commands, want 2 after 3 (%v)", state.Free, reqs[2].Name, b.drv.Sent(), err)
		}
		wantNone(t, first.Release(t.Context()))
		b.wantKeys(t, reqs[1].Name+":fence")
	})
}

// A request of this process that is in a queue for one of the names is not passed.
func TestBatchPassesNoWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Locker = locker.Must(single.New(b.drv, single.Config{}))
		l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{})))
		batches, _ := locker.As[locker.BatchAcquirer](l)
		held := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "{x}1", TTL: time.Hour}))
		done := make(chan *locker.Lock)
		go func() {
			lock, err := l.Acquire(t.Context(), locker.Request{Name: "{x}1", TTL: time.Hour})
			wantNone(t, err)
			done <- lock
		}()
		synctest.Wait()
		b.drv.Then()
		if batch, err := batches.AcquireBatch(t.Context(), batchOf(3)); batch != nil || !errors.Is(err, errors.ErrUnsupported) || b.drv.Sent() > 0 {
			t.Errorf("%v, %v after %d commands; want ErrUnsupported", batch, err, b.drv.Sent())
		}
		wantNone(t, held.Release(t.Context()))
		wantNone(t, (<-done).Release(t.Context()))
		b.drv.Then()
		batch, err := batches.AcquireBatch(t.Context(), batchOf(3))
		wantNone(t, err)
		for _, lock := range batch.Unclaimed() {
			wantNone(t, lock.Release(t.Context()))
		}
		batch.End()
		b.wantKeys(t)
	})
}
