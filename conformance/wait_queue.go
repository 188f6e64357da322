package conformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

func manyWaitersSendOne(t *caseT) {
	var flying, tooMany atomic.Int32
	inner := t.direct()
	counted := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		n := flying.Add(1)
		defer flying.Add(-1)
		if n > 1 {
			tooMany.Store(n)
		}
		return inner.Acquire(ctx, req)
	})
	l, name := t.waiting(counted, retry.Config{}), t.Key()
	var wg sync.WaitGroup
	entered := 0 // unguarded: the race detector reports a second holder
	for range 64 {
		wg.Go(func() {
			err := locker.Do(t.Ctx, l, locker.Request{Name: name, TTL: long},
				func(context.Context, *locker.Lock) error {
					entered++
					return nil
				})
			if err != nil {
				t.Errorf("Do: %v", err)
			}
		})
	}
	wg.Wait()
	if n := tooMany.Load(); n != 0 {
		t.Errorf("%d attempts of one process and name were under way at once, want 1", n)
	}
	if entered != 64 {
		t.Errorf("%d of 64 waiters got the lock", entered)
	}
}

func waitersQueueInOrder(t *caseT) {
	l, name := t.waiting(t.direct(), retry.Config{}), t.Key()
	first := t.acquire(l, locker.Request{Name: name, TTL: long})
	order := make(chan int, 5)
	var waiters []<-chan *locker.Lock
	for i := range cap(order) {
		req := locker.Request{Name: name, TTL: long}
		waiters = append(waiters, t.waitAs(locker.Func(func(ctx context.Context,
			req locker.Request) (*locker.Lock, error) {
			lock, err := l.Acquire(ctx, req)
			if err == nil {
				order <- i
				err = lock.Release(ctx)
			}
			return lock, err
		}), req, func(info locktrace.WaitingInfo) bool { return info.Queued == i }))
	}
	t.OK(first.Release(t.Ctx), "Release")
	for i, ch := range waiters {
		t.got(ch, "in the queue")
		if next := <-order; next != i {
			t.Errorf("waiter %d got the lock in place of waiter %d", next, i)
		}
	}
}

func leaverPassesItsTurnOn(t *caseT) {
	l, name := t.waiting(t.direct(), retry.Config{Policy: never}), t.Key()
	for range 3 {
		lock := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
		waits := make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(locktrace.With(t.Ctx,
			&locktrace.Trace{Waiting: func(context.Context, locktrace.WaitingInfo) {
				select {
				case waits <- struct{}{}:
				default:
				}
			}}))
		head := suite.Background(func() error {
			lock, err := l.Acquire(ctx, locker.Request{Name: name, TTL: long})
			if err == nil {
				err = lock.Release(t.Ctx) // it was woken before it was cancelled
			}
			return err
		})
		t.Event(waits, "the head waits")
		behind := t.waitAs(l, locker.Request{Name: name, TTL: long},
			func(info locktrace.WaitingInfo) bool { return info.Queued == 1 })
		released := suite.Background(func() error { return lock.Release(t.Ctx) })
		cancel() // as the wake-up comes
		if err := t.Result(head, "the head, cancelled"); err != nil {
			t.Is(err, context.Canceled, "the head, cancelled")
		}
		t.OK(t.Result(released, "Release"), "Release")
		t.OK(t.got(behind, "behind a waiter that gave up").Release(t.Ctx), "Release")
	}
}

func processesExcludeEachOther(t *caseT) {
	name := t.Key()
	var wg sync.WaitGroup
	var inside atomic.Int32
	var last atomic.Int64
	for range 3 {
		l := t.waiting(t.direct(), retry.Config{})
		for range 4 {
			wg.Go(func() {
				for range 5 {
					err := locker.Do(t.Ctx, l, locker.Request{Name: name, TTL: long, Fenced: true},
						func(_ context.Context, lock *locker.Lock) error {
							defer inside.Add(-1)
							if n := inside.Add(1); n != 1 {
								t.Errorf("%d are inside at once", n)
							}
							if before := last.Swap(lock.Fence()); before >= lock.Fence() {
								t.Errorf("the fencing token went from %d to %d", before, lock.Fence())
							}
							return nil
						})
					if err != nil {
						t.Errorf("Do: %v", err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	t.gone(name, "after the last release")
}

func waiterGivesUp(t *caseT) {
	// With this policy the waiter is idle at the end of its time; an attempt in flight would have an
	// unknown outcome. No strategy asks for a retry at that time (rwhash does so after 400 ms).
	l, name := t.waiting(t.direct(), retry.Config{Policy: never}), t.Key()
	lock := t.acquire(t.direct(), locker.Request{Name: name, TTL: long, Note: "step 2"})
	const wait = 300 * time.Millisecond
	for _, tc := range []struct {
		what             string
		maxWait, timeout time.Duration
		noWait           bool
		match            error
		took             time.Duration
	}{
		{"MaxWait", wait, long, false, locker.ErrMaxWait, wait},
		{"deadline", 0, wait, false, context.DeadlineExceeded, wait},
		{"NoWait", 0, long, true, locker.ErrNotAcquired, 0},
	} {
		ctx, cancel := context.WithTimeout(t.Ctx, tc.timeout)
		began := time.Now()
		_, err := l.Acquire(ctx, locker.Request{Name: name, MaxWait: tc.maxWait, NoWait: tc.noWait})
		cancel()
		t.took(began, tc.took, "a waiter with %s", tc.what)
		t.Is(err, locker.ErrNotAcquired, "%s", tc.what)
		t.Is(err, tc.match, "%s", tc.what)
		var ce *locker.ContentionError
		if !errors.As(err, &ce) || ce.Note != "step 2" {
			t.Errorf("%s: %v does not name the holder", tc.what, err)
		}
	}
	ctx, cancelWait := context.WithCancel(t.Ctx)
	result := acquiring(ctx, l, locker.Request{Name: name})
	cancelWait()
	t.Is(t.Result(result, "a cancelled waiter"), context.Canceled, "a cancelled waiter")
	if !t.Lacks(suite.FeatureSubscribe) {
		ce := t.contended(t.direct(), locker.Request{Name: name})
		t.Eventually("nobody listens any more", func() bool { return t.Listeners(ce.Channel.Name()) == 0 })
	}
	t.OK(lock.Release(t.Ctx), "Release")
	t.free(l, name)
}

// givesUp has a request of l wait until it listens, and cancels it.
func (t *caseT) givesUp(l locker.Locker, req locker.Request) {
	t.Helper()
	t.waitsUntilCancelled(l, req)()
}

// waitsUntilCancelled has a request of l wait until it listens, and returns its cancel function.
func (t *caseT) waitsUntilCancelled(l locker.Locker, req locker.Request) (cancel func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Ctx)
	listens := make(chan struct{}, 1)
	result := acquiring(locktrace.With(ctx, &locktrace.Trace{Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
		if info.Subscribed {
			select {
			case listens <- struct{}{}:
			default:
			}
		}
	}}), l, req)
	t.Event(listens, "a waiter listens")
	return func() {
		t.Helper()
		stop()
		t.Is(t.Result(result, "a waiter that gives up"), context.Canceled, "a waiter that gives up")
	}
}

// waitBehind is waitAs for a request that only a waiter keeps out. In real time the request may also
// acquire the lock at once: a waiter whose process gets no CPU for seconds loses its place.
func (t *caseT) waitBehind(l locker.Locker, req locker.Request) <-chan *locker.Lock {
	t.Helper()
	if t.InFakeTime() {
		return t.waitAs(l, req, subscribed)
	}
	entered := make(chan struct{}, 1)
	enter := func() {
		select {
		case entered <- struct{}{}:
		default:
		}
	}
	ctx := locktrace.With(t.Ctx, &locktrace.Trace{
		Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
			if subscribed(info) {
				enter()
			}
		},
		Acquired: func(context.Context, locktrace.AcquiredInfo) { enter() },
	})
	got := make(chan *locker.Lock, 1)
	go func() {
		lock, err := l.Acquire(ctx, req)
		if err != nil {
			t.Errorf("Acquire behind a waiter: %v", err)
		}
		got <- lock
	}()
	t.Event(entered, "the request waits, or has the lock")
	return got
}

// nobodyInTheWay demands that req succeeds within a few milliseconds.
func (t *caseT) nobodyInTheWay(req locker.Request, what string) {
	t.Helper()
	l, began := t.direct(), time.Now()
	t.freeSoon(l, atOnce(req), what)
	if took := time.Since(began); t.InFakeTime() && took > 20*latency {
		t.Errorf("%s: it took %v", what, took)
	}
}

func leaverKeepsNobodyOut(t *caseT) {
	waiter, name := t.waiting(t.direct(), retry.Config{Policy: never}), t.Key()
	held := t.acquire(t.direct(), writer(name))
	t.givesUp(waiter, writer(name))
	t.OK(held.Release(t.Ctx), "Release")
	t.nobodyInTheWay(writer(name), "an acquire after a waiter gave up")
	if !t.h.Can.Shared {
		return
	}

	held = t.acquire(t.direct(), reader(name))
	t.givesUp(waiter, writer(name))
	t.nobodyInTheWay(reader(name), "a new reader, after a writer gave up")

	for _, inBoth := range []bool{false, true} {
		leave := t.waitsUntilCancelled(waiter, writer(name))
		var readers []<-chan *locker.Lock
		if inBoth { // processes
			readers = append(readers, t.waitBehind(waiter, reader(name)))
		}
		readers = append(readers, t.waitBehind(t.waiting(t.direct(), retry.Config{Policy: never}), reader(name)))
		began := time.Now()
		leave()
		for _, got := range readers {
			t.OK(t.got(got, "after a writer gave up").Release(t.Ctx), "Release")
		}
		if took := time.Since(began); t.InFakeTime() && took > 20*latency {
			t.Errorf("the readers that waited got in %v after the writer gave up", took)
		}
	}
	t.OK(held.Release(t.Ctx), "Release")

	drv := t.Driver()
	t.connect(drv)
	held = t.acquire(t.direct(), reader(name))
	t.givesUp(t.waiting(t.locker(drv), retry.Config{Policy: never}), writer(name))
	t.Close(drv)
	t.nobodyInTheWay(reader(name), "a new reader, after a writer gave up and its driver was closed")
	t.OK(held.Release(t.Ctx), "Release")

	t.readerLeavesBesideAWriter(waiter, name)
	for _, pause := range []time.Duration{0, 30 * latency} { // the release may come before the server knows
		held = t.acquire(t.direct(), writer(name))
		t.givesUp(waiter, reader(name))
		t.Pause(pause)
		t.OK(held.Release(t.Ctx), "Release")
		t.nobodyInTheWay(writer(name), "a new writer, after a reader gave up")
	}
}

// readerLeavesBesideAWriter has a reader give up while a writer of its process goes on waiting.
func (t *caseT) readerLeavesBesideAWriter(waiter locker.Locker, name string) {
	t.Helper()
	held := t.acquire(t.direct(), writer(name))
	if !lease.TraitsOf(t.direct()).Ordered {
		t.OK(held.Release(t.Ctx), "Release") // the reader waits behind the writer, and sends nothing
		return
	}
	next := t.waitAs(waiter, writer(name), subscribed)
	t.givesUp(waiter, reader(name))
	t.Pause(30 * latency)
	began := time.Now()
	t.OK(held.Release(t.Ctx), "Release")
	t.OK(t.got(next, "after a reader of its process gave up").Release(t.Ctx), "Release")
	if took := time.Since(began); t.InFakeTime() && took > 20*latency {
		t.Errorf("a writer got in %v after the release, though the reader of its process had given up", took)
	}
}
