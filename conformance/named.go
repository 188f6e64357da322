package conformance

import (
	"context"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/named"
)

var namedCases = []testCase{
	{
		name: "a name is locked once in all processes", contract: 1, on: suite.AllKinds,
		why: "who locks by name has no Lock to compare: neither a second caller nor another process may unlock for it",
		run: namedOnce,
	},
	{
		name: "a lost name blocks nobody", contract: 9, on: suite.OnlyMemory, can: lapses,
		why: "the caller that lost a name unlocks it late, and must not release the lock of the next one",
		run: namedLost,
	},
}

// names locks names as named.Mutex does.
type names interface {
	TryLock(ctx context.Context, name string) (bool, error)
	Unlock(ctx context.Context, name string) error
}

// named makes named.Mutex, unless the harness has others.
func (t *caseT) named(l locker.Locker, req locker.Request) names {
	t.Helper()
	if t.h.named != nil {
		return t.h.named(l, req)
	}
	s, err := named.New(l, req)
	t.OK(err, "named.New")
	return s
}

// locks demands that TryLock returns want.
func (t *caseT) locks(s names, name string, want bool, what string) {
	t.Helper()
	got, err := s.TryLock(t.Ctx, name)
	t.OK(err, "TryLock %s", what)
	if got != want {
		t.Fatalf("TryLock %s returned %v", what, got)
	}
}

func namedOnce(t *caseT) {
	req := locker.Request{TTL: long}
	a, b, name := t.named(t.direct(), req), t.named(t.direct(), req), t.Key()
	for range 3 {
		t.locks(a, name, true, "of a free name")
		t.locks(a, name, false, "by a second caller of the process")
		t.locks(b, name, false, "by another process")
		t.Is(b.Unlock(t.Ctx, name), locker.ErrNotHeld, "Unlock by another process")
		t.locks(b, name, false, "after another process tried to unlock it")
		t.OK(a.Unlock(t.Ctx, name), "Unlock")
		t.Is(a.Unlock(t.Ctx, name), locker.ErrNotHeld, "a second Unlock")
		t.gone(name, "after Unlock")
		a, b = b, a
	}
}

func namedLost(t *caseT) {
	l, name := t.direct(), t.Key()
	a, other := t.named(l, locker.Request{TTL: brief}), t.named(t.direct(), locker.Request{TTL: long})
	t.locks(a, name, true, "of a free name")
	t.Eventually("the lost name can be locked", func() bool {
		ok, err := other.TryLock(t.Ctx, name)
		t.OK(err, "TryLock while the name is held")
		return ok
	})
	t.Is(a.Unlock(t.Ctx, name), locker.ErrLost, "Unlock of a lost name")
	t.OK(other.Unlock(t.Ctx, name), "Unlock by the next process")

	c := t.named(l, locker.Request{TTL: brief})
	t.locks(c, name, true, "of a free name")
	t.Eventually("the lost name can be locked by the same process", func() bool {
		ok, err := c.TryLock(t.Ctx, name)
		t.OK(err, "TryLock while the name is held")
		return ok
	})
	t.Is(c.Unlock(t.Ctx, name), locker.ErrLost, "Unlock of a lost name")
	t.contended(t.direct(), locker.Request{Name: name})
	t.OK(c.Unlock(t.Ctx, name), "Unlock by the next caller")
	t.gone(name, "after Unlock")
}
