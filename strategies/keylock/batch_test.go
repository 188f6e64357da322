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

	"github.com/holdfast-go/holdfast/internal/check"
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
	eachBatchWith(t, settings{}, f)
}

func eachBatchWith(t *testing.T, s settings, f func(t *testing.T, b *bench)) {
	t.Helper()
	eachStrategy(t, s, func(t *testing.T, b *bench) {
		if strategyOf(b.Locker) != "exclusive" {
			f(t, b)
		}
	})
}

// eachBatchCase is eachBatch for each entry of a table.
func eachBatchCase[T any](t *testing.T, tests map[string]T, f func(t *testing.T, b *bench, tt T)) {
	eachCase(t, settings{}, tests, func(t *testing.T, b *bench, tt T) {
		if strategyOf(b.Locker) != "exclusive" {
			f(t, b, tt)
		}
	})
}

// acquireAll acquires all by one command, through l.
func (b *bench) acquireAll(ctx context.Context, t *testing.T, l locker.Locker, reqs []locker.Request) *locker.Locks {
	t.Helper()
	b.drv.Then()
	locks, err := locker.AcquireAll(ctx, l, reqs)
	if err != nil || b.drv.Sent() != 1 {
		t.Fatalf("%v after %d commands, want locks after one", err, b.drv.Sent())
	}
	return locks
}

// sendBatch returns the error of a batch alone, whose locks it releases.
func sendBatch(t *testing.T, l locker.Locker, reqs []locker.Request) error {
	t.Helper()
	acquirer, _ := locker.As[locker.BatchAcquirer](l)
	batch, err := acquirer.AcquireBatch(t.Context(), reqs)
	if batch != nil {
		for _, lock := range batch.Unclaimed() {
			wantNone(t, lock.Release(t.Context()))
		}
		batch.End()
	}
	return err
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
		locks := b.acquireAll(ctx, t, b.Locker, reqs)
		for i, lock := range locks.All() {
			if lock.Name() != reqs[i].Name || lock.TTL() != reqs[i].TTL || (lock.Fence() > 0) != reqs[i].Fenced || made[i] != lock.Name() {
				t.Errorf("lock %d is %v, reported as of %q; want %+v", i, lock, made[i], reqs[i])
			}
			wantNone(t, lock.Renew(t.Context(), 0))
			state := locker.Must(locker.Inspect(t.Context(), b.Locker, lock.Name()))
			if !state.Held || state.Note != reqs[i].Note || state.Left <= batchTTL-time.Second || state.Left > reqs[i].TTL {
				t.Errorf("the server has %+v, want %+v", state, reqs[i])
			}
			wantIs(t, check.ErrOf(b.Acquire(t.Context(), reqs[i])), locker.ErrNotAcquired)
		}
		wantNone(t, locks.Release(t.Context()))
		b.wantKeys(t, "{x}0:fence", "{x}2:fence", "{x}4:fence", "{x}6:fence")
	})
}

// One lock that cannot be acquired keeps all from being written, and the error is that of an
// acquire of it alone.
func TestBatchOrNone(t *testing.T) {
	eachBatchCase(t, map[string]func(t *testing.T, b *bench, name string){
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
	}, func(t *testing.T, b *bench, spoil func(t *testing.T, b *bench, name string)) {
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
			check.Equal(t, "data", b.m.Dump(), before)
			b.m.FlushAll()
		}
	})
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
		wantIs(t, err, locker.ErrMaxWait, locker.ErrNotAcquired)
		wantFailed(t, err, "{x}2")
		locks := locker.Must(locker.AcquireAll(t.Context(), l, batchOf(4)))
		check.Within(t, "time until the acquire", time.Since(start), 10*time.Second, 13*time.Second)
		wantNone(t, locks.Release(t.Context()))
		wantNone(t, <-released)
	})
}

// Contract 5: a batch that is given up leaves nothing, for each of its names.
func TestBatchGivenUpLeavesNothing(t *testing.T) {
	eachBatchCase(t, map[string][]faultdriver.Fault{
		"executed":           {{Lose: true}, {Hang: true}},
		"executed late":      {{Late: 2 * time.Second}, {Hang: true}},
		"executed very late": {{Late: 20 * time.Second}, {Hang: true}},
		"answered late":      {{Delay: 5 * time.Second}},
	}, func(t *testing.T, b *bench, plan []faultdriver.Fault) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.drv.Then(plan...)
		start := time.Now()
		_, err := locker.AcquireAll(ctx, b.Locker, batchOf(3))
		wantIs(t, err, locker.ErrUnknownOutcome, context.DeadlineExceeded)
		if took := time.Since(start); errors.Is(err, locker.ErrNotAcquired) || took > 2*time.Second {
			t.Errorf("error %v after %v; ctx ended after 1s", err, took)
		}
		wantFailed(t, err, "{x}0")
		b.drv.WaitLate()
		time.Sleep(time.Second) //nolint:forbidigo // fake time
		b.wantKeys(t)
		wantNone(t, locker.Must(b.Acquire(t.Context(), batchOf(1)[0])).Release(t.Context()))
	})
}

// An answer that comes after the end of one of the leases is too late for all.
func TestBatchAnsweredTooLate(t *testing.T) {
	eachBatchWith(t, settings{attempt: time.Second}, func(t *testing.T, b *bench) {
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
	untilClose context.Context //nolint:containedctx // what UntilClose returns
	begin      func()          // begins to close it
	inFlight   atomic.Int64
}

func newClosingDriver(drv driver.Driver) *closingDriver {
	d := &closingDriver{Driver: drv}
	d.untilClose, d.begin = context.WithCancel(context.Background())
	return d
}

func (d *closingDriver) BeginAcquire() (end func(), err error) {
	if d.untilClose.Err() != nil {
		return nil, locker.ErrClosed
	}
	d.inFlight.Add(1)
	return func() { d.inFlight.Add(-1) }, nil
}

func (d *closingDriver) UntilClose() context.Context { return d.untilClose }

// Close in the middle of a batch: nothing is acquired, and nothing left.
func TestBatchWhileTheDriverCloses(t *testing.T) {
	for _, when := range []string{"before", "during the command", "during the first claim", "after"} {
		t.Run(when, func(t *testing.T) {
			eachBatch(t, func(t *testing.T, b *bench) {
				drv := newClosingDriver(b.drv)
				inner := locker.Must(b.new(drv, settings{}))
				switch when {
				case "before":
					drv.begin()
				case "during the command":
					b.drv.Then(faultdriver.Fault{Delay: time.Second})
					time.AfterFunc(time.Second/2, drv.begin)
				}
				claims := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
					lock, err := inner.Acquire(ctx, req)
					if when == "during the first claim" {
						drv.begin()
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
				check.Equal(t, "acquires in flight", drv.inFlight.Load(), 0)
				b.wantKeys(t)
			})
		})
	}
}

// A driver that panics in the middle of a batch, as in a hook of its client, is not kept from
// closing.
func TestBatchWhoseDriverPanics(t *testing.T) {
	t.Parallel()
	drv := newClosingDriver(panickingDriver{silentDriver{}})
	defer func() {
		if n := drv.inFlight.Load(); recover() == nil || n != 0 {
			t.Errorf("%d acquires are in flight, want none after a panic", n)
		}
	}()
	_, err := locker.AcquireAll(t.Context(), locker.Must(single.New(drv, single.Config{})), batchOf(3))
	t.Errorf("AcquireAll returned %v", err)
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

// Batches pass through all middleware of Holdfast. Middleware that refuses a request, changes it, or
// does not pass its ctx on is as sound as with single acquires. What middleware denies that takes
// part in no batch is never acquired, not even for a moment.
func TestBatchUnderMiddleware(t *testing.T) {
	denial := fmt.Errorf("not for you: %w", driver.ErrPermanent)
	type acquire func(ctx context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error)
	around := func(inner locker.Locker, f acquire) wrapped {
		return wrapped{locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			return f(ctx, inner, req)
		}), inner}
	}
	takesPart := func(f acquire) locker.Middleware {
		return func(inner locker.Locker) locker.Locker { return taking{around(inner, f)} }
	}
	denies := func(ctx context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error) {
		if req.Name == "{x}1" {
			return nil, denial
		}
		return inner.Acquire(ctx, req)
	}
	apart := func(inner locker.Locker) locker.Locker { return around(inner, denies) }
	dog, again := locker.Must(watchdog.New(watchdog.Config{})), locker.Must(retry.New(retry.Config{}))
	type test struct {
		m    locker.Middleware
		want error
		sent int // commands of an acquire; 0: any
		note string
	}
	eachBatchCase(t, map[string]test{
		"watchdog":                  {dog, nil, 1, ""},
		"retry":                     {again, nil, 1, ""},
		"tracing":                   {tracing.New(tracing.Config{}), nil, 1, ""},
		"metrics":                   {locker.Must(metrics.New(metrics.Config{})), nil, 1, ""},
		"logging":                   {locker.Must(logging.New(logging.Config{})), nil, 1, ""},
		"denies":                    {apart, denial, 2, ""}, // the acquire and the release of {x}0
		"denies below the watchdog": {func(l locker.Locker) locker.Locker { return dog(apart(l)) }, denial, 2, ""},
		"denies below retry":        {func(l locker.Locker) locker.Locker { return again(apart(l)) }, denial, 2, ""},
		"takes part and denies":     {takesPart(denies), denial, 0, ""},
		"changes a request": {takesPart(func(ctx context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error) {
			req.Note = "changed"
			return inner.Acquire(ctx, req)
		}), nil, 0, "changed"},
		"drops the values of ctx": {takesPart(func(_ context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error) {
			return inner.Acquire(context.Background(), req)
		}), nil, 0, ""},
		"fails behind one": {takesPart(func(ctx context.Context, inner locker.Locker, req locker.Request) (*locker.Lock, error) {
			lock, err := inner.Acquire(ctx, req)
			if req.Name == "{x}1" && err == nil {
				return nil, errors.Join(denial, lock.Release(ctx))
			}
			return lock, err
		}), denial, 0, ""},
	}, func(t *testing.T, b *bench, tt test) {
		b.drv.Then()
		locks, err := locker.AcquireAll(t.Context(), tt.m(b.Locker), batchOf(3))
		if n := b.drv.Sent(); tt.sent > 0 && n != tt.sent {
			t.Errorf("sent %d commands, want %d", n, tt.sent)
		}
		if tt.want != nil {
			wantIs(t, err, tt.want)
			wantFailed(t, err, "{x}1")
		} else {
			wantNone(t, err)
			check.Equal(t, "note", locker.Must(locker.Inspect(t.Context(), b.Locker, "{x}1")).Note, tt.note)
			wantNone(t, locks.Release(t.Context()))
		}
		b.wantKeys(t)
	})
}

// plain is a driver of several servers.
type plain struct{ driver.Driver }

func (plain) Delivery(string) driver.Delivery { return driver.DeliveryPlain }

// Names in several slots are acquired in order, unless there is one server for all of them.
func TestBatchOfSeveralSlots(t *testing.T) {
	reqs := []locker.Request{{Name: "a"}, {Name: "b"}}
	eachBatch(t, func(t *testing.T, b *bench) {
		several := locker.Must(b.new(plain{b.drv}, settings{}))
		wantIs(t, sendBatch(t, several, reqs), errors.ErrUnsupported)
		wantNone(t, locker.Must(locker.AcquireAll(t.Context(), several, reqs)).Release(t.Context()))
		l := locker.Must(single.New(b.drv.Driver, single.Config{})) // which tells that it has one server
		wantNone(t, sendBatch(t, l, reqs))
		wantNone(t, sendBatch(t, l, reqs[:1]))
		b.wantKeys(t)
	})
}

// Under Fair a name that is kept for a waiter is not free for others.
func TestBatchIsFair(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, fairLocks, func(t *testing.T, open opener) {
		b := benchOf(t, open)
		reqs := batchOf(3)
		held := locker.Must(b.Acquire(t.Context(), reqs[1]))
		waiter := lease.WithWaiting(t.Context(), lease.Waiting{ID: lease.NewToken(), Since: time.Now()})
		wantIs(t, check.ErrOf(b.Acquire(waiter, reqs[1])), locker.ErrNotAcquired)
		wantNone(t, held.Release(t.Context()))
		reqs[0].NoWait = true
		_, err := locker.AcquireAll(t.Context(), b.Locker, reqs)
		wantIs(t, err, locker.ErrNotAcquired)
		wantFailed(t, err, reqs[1].Name)
		wantNone(t, locker.Must(b.Acquire(waiter, reqs[1])).Release(t.Context()))
		wantNone(t, b.acquireAll(t.Context(), t, b.Locker, reqs).Release(t.Context()))
		b.wantKeys(t)
	})
}

// What a server says of several keys alone is no reason to fail.
func TestBatchThatTheServerRefuses(t *testing.T) {
	eachBatchCase(t, map[string]string{
		"TRYAGAIN":  "TRYAGAIN Multiple keys request during rehashing of slot",
		"CROSSSLOT": "CROSSSLOT Keys in request don't hash to the same slot",
		"LOADING":   "LOADING Redis is loading",
	}, func(t *testing.T, b *bench, text string) {
		reqs := batchOf(3)
		reqs[0].NoWait = true
		b.drv.Then(faultdriver.Fault{Err: &driver.ServerError{Text: text}})
		locks := locker.Must(locker.AcquireAll(t.Context(), b.Locker, reqs))
		check.Equal(t, "commands", b.drv.Sent(), 4)
		wantNone(t, locks.Release(t.Context()))
		b.wantKeys(t)
	})
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
		locks := b.acquireAll(ctx, t, b.Locker, reqs)
		if all := locks.All(); all[1].Owner() != outer.Owner() || all[1].Fence() != outer.Fence() || all[0].Owner() == outer.Owner() {
			t.Errorf("owners %q, %q, of the outer lock %q; fences %d, %d",
				all[0].Owner(), all[1].Owner(), outer.Owner(), all[1].Fence(), outer.Fence())
		}
		for i, holds := range []int{1, 2, 1} {
			check.Equal(t, "holds of "+reqs[i].Name, locker.Must(locker.Inspect(ctx, b.Locker, reqs[i].Name)).Holds, holds)
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
		locks := b.acquireAll(t.Context(), t, b.Locker, reqs)
		check.Equal(t, "fence of the second reader", locks.All()[1].Fence(), reader.Fence())
		writers := batchOf(3)
		writers[0].NoWait = true
		wantNone(t, locks.All()[0].Release(t.Context()))
		wantFailed(t, check.ErrOf(locker.AcquireAll(t.Context(), b.Locker, writers)), writers[1].Name)
		wantNone(t, reader.Release(t.Context()))
		wantNone(t, locks.Release(t.Context()))
		locks = b.acquireAll(t.Context(), t, b.Locker, writers)
		wantNone(t, locks.All()[1].Downgrade(t.Context()))
		wantNone(t, locks.Release(t.Context()))

		b.Locker = locker.Must(semaphore.New(b.drv, semaphore.Config{Permits: 3}))
		reqs = batchOf(3)
		reqs[0].NoWait, reqs[1].Permits = true, 2
		first := b.acquireAll(t.Context(), t, b.Locker, reqs)
		wantFailed(t, check.ErrOf(locker.AcquireAll(t.Context(), b.Locker, reqs)), reqs[1].Name)
		check.Equal(t, "free permits", locker.Must(locker.Inspect(t.Context(), b.Locker, reqs[2].Name)).Free, 2)
		check.Equal(t, "commands", b.drv.Sent(), 3)
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
		held := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "{x}1", TTL: time.Hour}))
		done := make(chan *locker.Lock)
		go func() {
			lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "{x}1", TTL: time.Hour}))
			done <- lock
		}()
		synctest.Wait()
		b.drv.Then()
		wantIs(t, sendBatch(t, l, batchOf(3)), errors.ErrUnsupported)
		check.Equal(t, "commands", b.drv.Sent(), 0)
		wantNone(t, held.Release(t.Context()))
		wantNone(t, (<-done).Release(t.Context()))
		wantNone(t, sendBatch(t, l, batchOf(3)))
		b.wantKeys(t)
	})
}
