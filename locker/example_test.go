//realtime:ok an example of a Locker in memory

package locker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// locks stands for a Locker over Redis, as strategies/single makes one.
func locks() *lockertest.Locker { return lockertest.New() }

// Do holds a lock while a function runs. Its ctx ends if the lock is lost meanwhile.
func ExampleDo() {
	ctx := context.Background()
	err := locker.Do(ctx, locks(), locker.Request{Name: "invoice:42"}, func(_ context.Context, lock *locker.Lock) error {
		fmt.Println("charging under", lock.Name())
		return nil
	})
	fmt.Println(err)
	// Output:
	// charging under invoice:42
	// <nil>
}

// A lock that ends before the work does is an error, joined with the work's own.
func ExampleDo_lost() {
	ctx := context.Background()
	req := locker.Request{Name: "invoice:42", TTL: 10 * time.Millisecond}
	err := locker.Do(ctx, locks(), req, func(ctx context.Context, _ *locker.Lock) error {
		<-ctx.Done() // work that outlasts its lease; middleware such as strategies/watchdog renews it
		return nil
	})
	fmt.Println(errors.Is(err, locker.ErrLost), err)
	// Output: true holdfast: release "invoice:42": lock was lost: its Deadline passed before it was renewed
}

// A cron job runs on every machine: one of them does the work, the others skip it.
func ExampleTry() {
	ctx, l := context.Background(), locks()
	job := func(context.Context, *locker.Lock) error {
		fmt.Println("reporting")
		return nil
	}
	fmt.Println(locker.Try(ctx, l, locker.Request{Name: "nightly"}, job))
	l.Hold(locker.Request{Name: "nightly", Owner: "another machine"})
	fmt.Println(locker.Try(ctx, l, locker.Request{Name: "nightly"}, job))
	// Output:
	// reporting
	// true <nil>
	// false <nil>
}

// A transfer locks both accounts. Transfers in the other direction acquire them in the same order,
// so none of them waits for another forever.
func ExampleDoAll() {
	ctx, l := context.Background(), locks()
	transfer := func(from, to string) error {
		reqs := []locker.Request{{Name: "account:" + from}, {Name: "account:" + to}}
		return locker.DoAll(ctx, l, reqs, func(_ context.Context, locks *locker.Locks) error {
			fmt.Println(locks)
			return nil
		})
	}
	fmt.Println(transfer("bob", "ann"))
	fmt.Println(transfer("ann", "ann"))

	l.Hold(locker.Request{Name: "account:bob", Owner: "audit"})
	err := transfer("ann", "bob")
	failed, _ := errors.AsType[*locker.OpError](err)
	fmt.Println(failed.Name, errors.Is(err, locker.ErrNotAcquired))
	// Output:
	// locks "account:ann", "account:bob" (held)
	// <nil>
	// locks "account:ann" (held)
	// <nil>
	// account:bob true
}

// All returns the locks in the order of the requests.
func ExampleAcquireAll() {
	ctx := context.Background()
	reqs := []locker.Request{{Name: "stock", Fenced: true}, {Name: "order:42", Mode: locker.Shared}}
	locks, err := locker.AcquireAll(ctx, locks(), reqs)
	if err != nil {
		fmt.Println(err)
		return
	}
	stock, order := locks.All()[0], locks.All()[1]
	fmt.Println(stock.Name(), stock.Fence(), order.Name(), order.Mode())
	fmt.Println(locks.Release(ctx), locks.Err())
	// Output:
	// stock 1 order:42 shared
	// <nil> lock was released
}

// A job of 20 ms runs once per tick, although the clocks of the replicas differ: the name stays
// taken for a while after the work.
func ExampleRequest_minHold() {
	ctx, l := context.Background(), locks()
	tick := locker.Request{Name: "nightly", MinHold: time.Minute, Owner: "replica 1"}
	job := func(context.Context, *locker.Lock) error {
		fmt.Println("reporting")
		return nil
	}
	fmt.Println(locker.Try(ctx, l, tick, job))
	tick.Owner = "replica 2" // its clock is behind
	fmt.Println(locker.Try(ctx, l, tick, job))
	state, err := locker.Inspect(ctx, l, "nightly")
	fmt.Println(state.Held, state.Holds, state.Owner, err)
	// Output:
	// reporting
	// true <nil>
	// false <nil>
	// true 0 replica 1 <nil>
}

// Without Do: acquire, work under the lock's ctx, release.
func ExampleLock_Context() {
	ctx, l := context.Background(), locks()
	lock, err := l.Acquire(ctx, locker.Request{Name: "import"})
	if err != nil {
		fmt.Println(err)
		return
	}
	work, cancel := lock.Context(ctx)
	defer cancel()

	l.Expire("import") // a paused process would find this when it goes on
	<-work.Done()
	fmt.Println(errors.Is(context.Cause(work), locker.ErrLost))
	fmt.Println(errors.Is(lock.Release(ctx), locker.ErrLost))
	// Output:
	// true
	// true
}

// AfterDone reports the end of a lock without a waiting goroutine.
func ExampleLock_AfterDone() {
	ctx, l := context.Background(), locks()
	lock := locker.Must(l.Acquire(ctx, locker.Request{Name: "leader"}))
	lock.AfterDone(func(err error) { fmt.Println("no longer the leader:", err) })
	fmt.Println(lock.Release(ctx))
	// Output:
	// no longer the leader: lock was released
	// <nil>
}

// A refused caller learns the holder, and the rest of its lease.
func ExampleContentionError() {
	ctx, l := context.Background(), locks()
	l.Hold(locker.Request{Name: "deploy", Owner: "ci-7", Note: "release 1.4", TTL: time.Minute})
	_, err := l.Acquire(ctx, locker.Request{Name: "deploy"})
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		fmt.Println(held.Owner, held.Note, held.RetryAfter > 0)
	}
	fmt.Println(errors.Is(err, locker.ErrNotAcquired))
	// Output:
	// ci-7 release 1.4 true
	// true
}

// A Middleware sees every acquisition. The first of a Chain is the outermost.
func ExampleChain() {
	announce := func(who string) locker.Middleware {
		return func(next locker.Locker) locker.Locker {
			return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				fmt.Println(who, "sees", req.Name)
				return next.Acquire(ctx, req)
			})
		}
	}
	l := locker.Chain(locks(), announce("outer"), announce("inner"))
	_, err := l.Acquire(context.Background(), locker.Request{Name: "a"})
	fmt.Println(err)
	// Output:
	// outer sees a
	// inner sees a
	// <nil>
}

// One process acquires, another goes on: the Handle is handed over as text. Keep it secret like a
// password.
func ExampleResume() {
	ctx, l := context.Background(), locks()
	first := locker.Must(l.Acquire(ctx, locker.Request{Name: "upload"}))
	text := first.Handle().Encode()

	// In the other process:
	handle, err := locker.ParseHandle(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := locker.Resume(ctx, l, handle)
	fmt.Println(second.Name(), err)

	// One hold is never two locks: the first is lost.
	fmt.Println(errors.Is(first.Renew(ctx, 0), locker.ErrLost))
	fmt.Println(second.Release(ctx))
	// Output:
	// upload <nil>
	// true
	// <nil>
}

// A service that unlocks in another process, or after a restart, keeps the Handle as text. Keep it
// secret like a password.
func ExampleHandle_Release() {
	ctx, l := context.Background(), locks()
	lock := locker.Must(l.Acquire(ctx, locker.Request{Name: "upload"}))
	text := lock.Handle().Encode()

	// In the other process:
	handle := locker.Must(locker.ParseHandle(text))
	fmt.Println(handle.Release(ctx, l))
	fmt.Println(errors.Is(handle.Release(ctx, l), locker.ErrNotHeld))
	// Output:
	// <nil>
	// true
}

// An operator ends the hold of a hung process.
func ExampleBreak() {
	ctx, l := context.Background(), locks()
	stuck := locker.Must(l.Acquire(ctx, locker.Request{Name: "import", Note: "host-7", TTL: time.Hour}))

	ended, err := locker.Break(ctx, l, "import")
	fmt.Println(ended.Note, err)
	fmt.Println(errors.Is(stuck.Renew(ctx, 0), locker.ErrLost))
	_, err = locker.Break(ctx, l, "import")
	fmt.Println(errors.Is(err, locker.ErrNotHeld))
	// Output:
	// host-7 <nil>
	// true
	// true
}

// A dashboard shows the holder of a lock, and its changes.
func ExampleWatch() {
	ctx, l := context.Background(), locks()
	lock := locker.Must(l.Acquire(ctx, locker.Request{Name: "import", Note: "host-7"}))
	for state, err := range locker.Watch(ctx, l, "import", 10*time.Millisecond) {
		switch {
		case err != nil:
			fmt.Println("unknown:", err) // it goes on
		case state.Held:
			fmt.Println("held by", state.Note)
			_ = lock.Release(ctx) // sooner or later
		default:
			fmt.Println("free")
			return
		}
	}
	// Output:
	// held by host-7
	// free
}

// A holder shows its progress to others.
func ExampleLock_SetNote() {
	ctx, l := context.Background(), locks()
	lock := locker.Must(l.Acquire(ctx, locker.Request{Name: "import", Note: "starting"}))
	fmt.Println(lock.SetNote(ctx, "row 5000 of 9000"))
	_, err := l.Acquire(ctx, locker.Request{Name: "import", NoWait: true})
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		fmt.Println(held.Note)
	}
	fmt.Println(lock.Release(ctx))
	// Output:
	// <nil>
	// row 5000 of 9000
	// <nil>
}

// A fencing token keeps out a holder paused for longer than its lease: each write carries the
// token, and the store refuses a smaller one than the last it saw. In SQL: UPDATE ... SET fence =
// $1 ... WHERE fence <= $1.
func ExampleLock_Fence() {
	ctx, l := context.Background(), locks()
	var seen int64
	write := func(who string, fence int64) {
		if fence == 0 || fence < seen {
			fmt.Println(who, "is refused")
			return
		}
		seen = fence
		fmt.Println(who, "writes")
	}
	req := locker.Request{Name: "file", Fenced: true}
	paused := locker.Must(l.Acquire(ctx, req))
	l.Expire("file") // its lease ends while it is paused
	next := locker.Must(l.Acquire(ctx, req))
	write("the next holder", next.Fence())
	write("the paused one", paused.Fence())
	// Output:
	// the next holder writes
	// the paused one is refused
}

// A ctx carries an owner for reentrant strategies; WithOwner applies to every name.
func ExampleWithOwner() {
	ctx := locker.WithOwner(context.Background(), "order-42")
	lock := locker.Must(locks().Acquire(ctx, locker.Request{Name: "stock"}))
	fmt.Println(lock)
	// Output: lock "stock" exclusive owner "order-42" (held)
}
