package conformance

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
)

// watchCases are about locker.Watch.
var watchCases = []testCase{
	{
		name: "Watch sees a hold come and go", contract: 1, on: suite.AllKinds,
		why: "a watcher that does not wait for the lock would be shown another holder",
		run: watchSeesHold,
	},
	{
		name: "Watch outlives an outage", contract: 4, on: suite.OneAddress,
		why: "the restart of a server would end the Watch, or an outage would look like a free lock",
		run: watchOutlivesOutage,
	},
	{
		name: "Watch sends nothing but polls", contract: 12, on: suite.OneAddress,
		why: "a watcher in the queue would cost each release a message, and be taken for a waiter",
		run: watchOnlyPolls,
	},
}

// watchEvery is the interval of the cases.
const watchEvery = 20 * time.Millisecond

// watch begins to watch a name, for the limit of a case. next returns the next State or error.
func (t *caseT) watch(l locker.Locker, name string) (next func() (locker.State, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Ctx, t.Limit)
	pull, stop := iter.Pull2(locker.Watch(ctx, unwrap(l), name, watchEvery))
	t.Cleanup(func() {
		stop()
		cancel()
	})
	return func() (locker.State, error) {
		t.Helper()
		state, err, ok := pull()
		if !ok {
			t.Fatalf("Watch has ended")
		}
		return state, err
	}
}

// sees waits until Watch yields a State with the given Held, and returns it. Watch yields an error
// for a poll without an answer, and goes on.
func (t *caseT) sees(next func() (locker.State, error), held bool) locker.State {
	t.Helper()
	for {
		state, err := next()
		if err == nil && state.Held == held {
			return state
		}
		t.Logf("Watch yields %+v, %v", state, err)
	}
}

func watchSeesHold(t *caseT) {
	l, name := t.direct(), t.Key()
	next := t.watch(t.direct(), name)
	t.sees(next, false)
	lock := t.acquire(l, locker.Request{Name: name, TTL: long, Owner: "me", Note: "why"})
	if state := t.sees(next, true); state.Owner != "me" || !strings.HasPrefix(state.Note, "why") || state.Holds != 1 {
		t.Errorf("Watch yields %+v", state)
	}
	t.OK(lock.Renew(t.Ctx, 0), "Renew")
	t.OK(lock.Release(t.Ctx), "Release")
	t.sees(next, false)
}

func watchOutlivesOutage(t *caseT) {
	p, l := t.behind()
	name := t.Key()
	next := t.watch(l, name)
	t.sees(next, false)
	lock := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
	t.sees(next, true)
	disconnect(p)
	state, err := next()
	for err == nil && state.Held { // after an unanswered poll
		state, err = next()
	}
	if err == nil || !state.Held {
		t.Errorf("Watch yields %+v and %v in an outage, want the last State and an error", state, err)
	}
	t.OK(lock.Release(t.Ctx), "Release")
	t.OK(p.Accept(), "the end of the outage")
	t.sees(next, false)
}

func watchOnlyPolls(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(t.direct(), locker.Request{Name: t.Key(), TTL: long})
	_, err := locker.Inspect(t.Ctx, unwrap(l), lock.Name()) // loads the script
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	t.OK(err, "Inspect")
	before := len(p.Requests())
	next := t.watch(l, lock.Name())
	t.sees(next, true)
	t.OK(lock.Release(t.Ctx), "Release")
	t.sees(next, false)
	for _, args := range p.Requests()[before:] {
		if strings.Contains(strings.ToUpper(args[0]), "SUBSCRIBE") {
			t.Errorf("Watch sent %q", args)
		}
	}
	if t.Exists(lock.Name()) {
		t.Errorf("Watch left the key of a released lock")
	}
}
