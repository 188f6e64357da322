package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

var severalCases = []testCase{
	{
		name: "several names are acquired or none", contract: 14, on: suite.AllKinds,
		why: "work on several things needs all of them; what a failed call leaves held would keep others out for nothing",
		run: severalOrNone,
	},
	{
		name: "several names in one slot are acquired or none", contract: 14, on: suite.AllKinds,
		why: "names in one slot travel together; what became of one must not hide what became of another",
		run: severalInOneSlot,
	},
	{
		name: "several names whose reply is lost are acquired once", contract: 14, on: suite.OneAddress,
		why: "the resend finds the lock taken by its own earlier send; each is held once and released",
		run: severalWhoseReplyIsLost,
	},
	{
		name: "names are acquired in one order", contract: 14, on: suite.WithoutSentinel,
		why: "two callers that name the same things in another order would wait for each other for ever",
		run: severalInOneOrder,
	},
	{
		name: "one name asked for twice is one lock", contract: 14, on: suite.WithoutSentinel,
		why: "a transfer from an account to itself would wait for itself",
		run: severalOfOneName,
	},
	{
		name: "the loss of any of several locks ends the work", contract: 14, on: suite.WithoutSentinel,
		why: "work that goes on without one of its locks is not exclusive",
		run: severalLost,
	},
}

// doAll calls fn under the locks of reqs, as locker.DoAll does unless the harness has another.
func (t *caseT) doAll(l locker.Locker, reqs []locker.Request, fn func(context.Context, []*locker.Lock) error) error {
	if t.h.doAll != nil {
		return t.h.doAll(t.Ctx, l, reqs, fn)
	}
	return doAll(t.Ctx, l, reqs, fn)
}

func doAll(ctx context.Context, l locker.Locker, reqs []locker.Request,
	fn func(context.Context, []*locker.Lock) error) error {
	return locker.DoAll(ctx, l, reqs,
		func(ctx context.Context, locks *locker.Locks) error { return fn(ctx, locks.All()) })
}

// lasting returns a request for each name.
func lasting(names ...string) (reqs []locker.Request) {
	for _, name := range names {
		reqs = append(reqs, locker.Request{Name: name, TTL: long})
	}
	return reqs
}

// keys returns n names in their order.
func (t *caseT) keys(n int) (names []string) {
	for range n {
		names = append(names, t.Key())
	}
	slices.Sort(names)
	return names
}

func severalOrNone(t *caseT) {
	l, other, names := t.direct(), t.direct(), t.keys(3)
	for _, taken := range names {
		held := t.acquire(other, locker.Request{Name: taken, TTL: long})
		err := t.doAll(l, lasting(names...), func(context.Context, []*locker.Lock) error {
			t.Errorf("the work runs although another holds one of its locks")
			return nil
		})
		t.Is(err, locker.ErrNotAcquired, "DoAll of a name that another holds")
		if oe, ok := errors.AsType[*locker.OpError](err); !ok || oe.Name != taken {
			t.Errorf("DoAll: %v, want an error that names %q", err, taken)
		}
		t.OK(held.Release(t.Ctx), "Release")
		for _, name := range names {
			t.free(other, name)
		}
	}
	t.OK(t.doAll(l, lasting(names[2], names[0], names[1]), func(ctx context.Context, locks []*locker.Lock) error {
		for i, name := range []string{names[2], names[0], names[1]} {
			if locks[i].Name() != name {
				t.Errorf("lock %d is of %q, want %q, as it was asked for", i, locks[i].Name(), name)
			}
			t.held(locks[i])
			t.contended(other, locker.Request{Name: name})
		}
		return ctx.Err()
	}), "DoAll of free names")
	for _, name := range names {
		t.gone(name, "after DoAll")
	}
}

// tagged returns n names of one slot, in their order.
func (t *caseT) tagged(n int) (names []string) {
	tag := t.Key()
	for i := range n {
		names = append(names, fmt.Sprintf("{%s}%d", tag, i))
	}
	return names
}

// severalInOneSlot spoils one name after another: another holds it, or it is a key of another type.
func severalInOneSlot(t *caseT) {
	l, other, names := t.direct(), t.direct(), t.tagged(3)
	reqs := lasting(names...)
	for i := range reqs {
		reqs[i].Fenced, reqs[i].NoWait = i == 1, true
	}
	all := func() error {
		return t.doAll(l, reqs, func(_ context.Context, locks []*locker.Lock) error {
			for i, lock := range locks {
				t.held(lock)
				if reqs[i].Fenced && lock.Fence() == 0 {
					t.Errorf("a lock without the fencing token that was asked for")
				}
				t.contended(other, reqs[i])
			}
			return nil
		})
	}
	t.OK(all(), "DoAll of free names in one slot")
	for _, spoiled := range names {
		none := func(err error) {
			t.Helper()
			if oe, ok := errors.AsType[*locker.OpError](err); !ok || oe.Name != spoiled {
				t.Errorf("DoAll: %v, want an error that names %q", err, spoiled)
			}
			for _, name := range names {
				if name != spoiled {
					t.free(other, name)
				}
			}
		}
		held := t.acquire(other, locker.Request{Name: spoiled, TTL: long})
		err := all()
		t.Is(err, locker.ErrNotAcquired, "DoAll of a name that another holds")
		none(err)
		t.OK(held.Release(t.Ctx), "Release")

		t.Do(spoiled, "RPUSH", spoiled, "an item")
		err = all()
		t.isNot(err, locker.ErrNotAcquired, "DoAll where a list is stored")
		t.isNot(err, locker.ErrUnknownOutcome, "DoAll where a list is stored")
		none(err)
		t.Do(spoiled, "DEL", spoiled)
		t.OK(all(), "DoAll of names that are free again")
	}
	for _, name := range names {
		t.gone(name, "after DoAll")
		t.Do(name, "DEL", t.fenceKey(name))
	}
}

// severalWhoseReplyIsLost loses the reply of a call for several locks.
func severalWhoseReplyIsLost(t *caseT) {
	for what, fault := range t.noticed(answerLost) {
		p, l := t.behind()
		names := t.tagged(3)
		trap := p.Fail(names[0], fault)
		var reqs []locker.Request
		for _, name := range names {
			reqs = append(reqs, locker.Request{Name: name, TTL: 3 * faulty, NoWait: true, MaxWait: 3 * faulty}) // alone, NoWait leaves a resend little time
		}
		t.OK(t.doAll(l, reqs, func(ctx context.Context, locks []*locker.Lock) error {
			for _, lock := range locks {
				t.held(lock)
				t.covers(lock)
			}
			return ctx.Err()
		}), "DoAll through a reply that was %s", what)
		t.Event(trap.Hit(), "the fault happens")
		for _, name := range names {
			t.gone(name, "after DoAll through a reply that was %s", what)
		}
	}
}

// severalInOneOrder lets a call wait for the first of its names: it must hold none of the others.
func severalInOneOrder(t *caseT) {
	l, other, names := t.waiting(t.direct(), retry.Config{}), t.direct(), t.keys(3)
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		first := t.acquire(other, locker.Request{Name: names[0], TTL: long})
		waits, done := make(chan struct{}, 1), make(chan error, 1)
		go func() {
			done <- t.doAll(notifying(l, waits), lasting(names[order[0]], names[order[1]], names[order[2]]),
				func(ctx context.Context, _ []*locker.Lock) error { return ctx.Err() })
		}()
		t.Event(waits, "the call waits")
		for _, name := range names[1:] {
			t.free(other, name)
		}
		t.OK(first.Release(t.Ctx), "Release")
		t.OK(t.Result(done, "DoAll"), "DoAll")
	}
}

// notifying reports on waits when an acquire of l waits.
func notifying(l locker.Locker, waits chan<- struct{}) locker.Locker {
	return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		return l.Acquire(locktrace.With(ctx, &locktrace.Trace{Waiting: func(context.Context, locktrace.WaitingInfo) {
			select {
			case waits <- struct{}{}:
			default:
			}
		}}), req)
	})
}

func severalOfOneName(t *caseT) {
	l, other, names := t.direct(), t.direct(), t.keys(2)
	reqs := []locker.Request{{Name: names[0], TTL: long / 2}, {Name: names[1], TTL: long},
		{Name: names[0], TTL: long, Fenced: true}}
	if t.h.Can.Shared {
		reqs[0].Mode = locker.Shared
	}
	t.OK(t.doAll(l, reqs, func(_ context.Context, locks []*locker.Lock) error {
		if lock := locks[0]; lock != locks[2] || lock.Mode() != locker.Exclusive || lock.TTL() != long ||
			lock.Fence() == 0 {
			t.Errorf("two requests for a name got %v and %v, want one exclusive lock with a fencing token and the longer TTL", lock, locks[2])
		}
		t.contended(other, locker.Request{Name: names[0]})
		return nil
	}), "DoAll with a name twice")
	t.gone(names[0], "after DoAll")
}

func severalLost(t *caseT) {
	l, names := t.direct(), t.keys(3)
	failed := errors.New("the work noticed")
	for i, name := range names {
		err := t.doAll(l, lasting(names...), func(ctx context.Context, locks []*locker.Lock) error {
			t.Do(name, "DEL", name)
			t.Is(locks[i].Renew(ctx, 0), locker.ErrLost, "Renew without the key")
			t.Event(ctx.Done(), "the work's context ends")
			if lost, ok := errors.AsType[*locker.LostError](context.Cause(ctx)); !ok || lost.Name != name {
				t.Errorf("the work was ended by %v, want the loss of %q", context.Cause(ctx), name)
			}
			return failed
		})
		t.Is(err, locker.ErrLost, "DoAll")
		t.Is(err, failed, "DoAll")
		for _, name := range names {
			t.gone(name, "after DoAll")
		}
	}
}
