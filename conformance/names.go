package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

var nameCases = []testCase{
	{
		name: "names are keys", contract: 2, on: suite.WithoutSentinel,
		why: "other libraries contend on the name itself, and a cluster needs the fence counter in its slot",
		run: namesAreKeys,
	},
	{
		name: "different names are different locks", contract: 2, on: suite.WithoutSentinel,
		why: "if names were trimmed, folded or cut, unrelated callers would share a lock",
		run: differentNamesAreDifferentLocks,
	},
	{
		name: "bad names are refused", contract: 2, on: suite.Simulated,
		why: "they have no key for their counter, or are the key of another lock's counter",
		run: badNamesAreRefused,
	},
	{
		name: "bad requests are refused", contract: 2, on: suite.Simulated,
		why: "nothing is corrected silently, and nothing is sent",
		run: badRequestsAreRefused,
	},
	{
		name: "an ended context acquires nothing", contract: 4, on: suite.OneAddress,
		why: "the caller has given up; nothing may be sent for it",
		run: doneContextAcquiresNothing,
	},
	{
		name: "bad arguments leave a hold alone", contract: 2, on: suite.WithoutSentinel,
		why: "a mistake in a call is an error and does not cost the lock; a release is final, so it is sent all the same",
		run: badArgumentsLeaveHoldAlone,
	},
	{
		name: "a closed driver ends the use of its locks", contract: 5, on: suite.WithoutSentinel, leaves: true,
		why: "use after Close must be reported as such, not as contention or loss",
		run: closedDriverEndsUse,
	},
}

func namesAreKeys(t *caseT) {
	l, id := t.direct(), t.Key()
	fences := map[string]string{
		id:                                     "{" + id + "}:fence",
		id + "\x00":                            "{" + id + "\x00}:fence",
		id + "\r\nx":                           "{" + id + "\r\nx}:fence",
		id + "\xff\xfe":                        "{" + id + "\xff\xfe}:fence",
		id + "{a":                              "{" + id + "{a}:fence",
		id + "{a}b":                            id + "{a}b:fence",
		"{" + id + "}":                         "{" + id + "}:fence",
		id + "{x}{y}":                          id + "{x}{y}:fence",
		id + ":fence:x":                        "{" + id + ":fence:x}:fence",
		id + " *?[a]\\\"'":                     "{" + id + " *?[a]\\\"'}:fence",
		id + strings.Repeat("n", 1024-len(id)): "{" + id + strings.Repeat("n", 1024-len(id)) + "}:fence",
	}
	for name, fence := range fences {
		if t.h.Siblings != nil {
			fence = t.h.Siblings.FenceKey(name)
		}
		if fence == "" {
			lock, err := l.Acquire(t.Ctx, locker.Request{Name: name, TTL: long})
			t.refusedAsInvalid(lock, err, "a name without a fence counter")
			continue
		}
		lock := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: true})
		if lock.Name() != name {
			t.Errorf("the lock of %.80q has the name %.80q", name, lock.Name())
		}
		if !t.Exists(name) {
			t.Errorf("the lock of %.80q has no key of that name", name)
		}
		if redistest.Slot(name) != redistest.Slot(fence) {
			t.Fatalf("%.80q and %.80q are in two slots", name, fence)
		}
		if v, _ := t.Stored(fence); v == "" {
			t.Errorf("the fence counter of %.80q is not at %.80q", name, fence)
		}
		t.contended(l, locker.Request{Name: name})
		t.OK(lock.Renew(t.Ctx, 0), "Renew of %.80q", name)
		t.OK(lock.Release(t.Ctx), "Release of %.80q", name)
		t.gone(name, "after Release")
	}
}

func differentNamesAreDifferentLocks(t *caseT) {
	l, id := t.direct(), t.Key()
	var locks []*locker.Lock
	for _, name := range []string{
		id + "a", id + "A", id + "a ", " " + id + "a", id + "a\x00", id + "a\x00b", id + "a\n", "{" + id + "a}",
		id + "{a}", id + "ä", id + "a\u0308",
	} {
		locks = append(locks, t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: true}))
	}
	for _, lock := range locks {
		t.OK(lock.Release(t.Ctx), "Release of %q", lock.Name())
	}
}

// refusedAsInvalid demands an *InvalidError with the argument, its value and the allowed ones.
func (t *caseT) refusedAsInvalid(lock *locker.Lock, err error, what string) {
	t.Helper()
	if lock != nil {
		t.Errorf("%s returned a lock", what)
	}
	t.Is(err, locker.ErrInvalid, "%s", what)
	var invalid *locker.InvalidError
	if !errors.As(err, &invalid) || invalid.What == "" || invalid.Got == "" || invalid.Allowed == "" {
		t.Errorf("%s: %v does not say what is wrong, where, and what is allowed", what, err)
	}
	if err != nil && len(err.Error()) > 1000 {
		t.Errorf("%s: the error is %d bytes long", what, len(err.Error()))
	}
}

// sentOf counts the commands about locks.
func sentOf(p *faultproxy.Proxy) int {
	return p.Count(func(args []string) bool {
		return slices.Contains([]string{"SET", "EVAL", "EVALSHA", "SUBSCRIBE"}, strings.ToUpper(args[0]))
	})
}

func badNamesAreRefused(t *caseT) {
	p, l := t.behind()
	before := sentOf(p)
	for what, name := range map[string]string{
		"an empty name": "", "a name of 1025 bytes": strings.Repeat("n", 1025),
		"a name of 1 MiB":   strings.Repeat("n", 1<<20),
		"an empty hash tag": "{}x", "a lone brace": "a}b", "braces in the wrong order": "}{", "a fence key": "a:fence",
		"a channel":          "a:wake",
		"a tagged fence key": "{a}:fence",
	} {
		for _, fenced := range []bool{false, true} {
			lock, err := l.Acquire(t.Ctx, locker.Request{Name: name, Fenced: fenced})
			t.refusedAsInvalid(lock, err, what)
		}
	}
	if n := sentOf(p); n != before {
		t.Errorf("requests that are refused sent %d commands", n-before)
	}
}

func badRequestsAreRefused(t *caseT) {
	p, l := t.behind()
	before := sentOf(p)
	const year = 365 * 24 * time.Hour
	big := strings.Repeat("x", 1025)
	for what, req := range map[string]locker.Request{
		"a negative TTL": {TTL: -time.Second}, "a TTL of 1 ns": {TTL: 1},
		"a TTL under 1 ms": {TTL: time.Millisecond - 1},
		"a TTL of a year":  {TTL: year}, "a TTL over 24 days": {TTL: locker.MaxTTL + 1}, "mode 7": {Mode: 7},
		"a negative MaxWait": {MaxWait: -1}, "an owner of 1025 bytes": {Owner: big},
		"a note of 1025 bytes": {Note: big},
	} {
		req.Name = "name"
		lock, err := l.Acquire(t.Ctx, req)
		t.refusedAsInvalid(lock, err, what)
	}
	lock, err := l.Acquire(nil, locker.Request{Name: "name"}) //nolint:staticcheck // deliberate
	t.refusedAsInvalid(lock, err, "a nil context")
	if !t.h.Can.Shared {
		lock, err = l.Acquire(t.Ctx, locker.Request{Name: "name", Mode: locker.Shared})
		if lock != nil {
			t.Errorf("a shared acquire returned a lock to a strategy without that mode")
		}
		t.Is(err, errors.ErrUnsupported, "a shared acquire")
		t.isNot(err, locker.ErrInvalid, "a shared acquire")
	}
	if n := sentOf(p); n != before {
		t.Errorf("requests that are refused sent %d commands", n-before)
	}
}

func doneContextAcquiresNothing(t *caseT) {
	p, l := t.behind()
	past, cancel := context.WithDeadline(t.Ctx, time.Now().Add(-time.Hour))
	defer cancel()
	for _, fenced := range []bool{false, true} {
		for _, ctx := range []context.Context{t.canceled(), past} {
			name := t.Key()
			lock, err := l.Acquire(ctx, locker.Request{Name: name, Fenced: fenced})
			if lock != nil {
				t.Errorf("an acquire under an ended context returned a lock")
			}
			t.Is(err, ctx.Err(), "Acquire under an ended context")
			t.isNot(err, locker.ErrUnknownOutcome, "Acquire under an ended context")
			t.isNot(err, locker.ErrNotAcquired, "Acquire under an ended context")
			if n := p.Sent(name); n > 0 {
				t.Errorf("an acquire under an ended context sent %d commands", n)
			}
		}
	}
}

func badArgumentsLeaveHoldAlone(t *caseT) {
	l := t.direct()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	for _, ttl := range []time.Duration{-1, 1, locker.MaxTTL + 1} {
		t.refusedAsInvalid(nil, lock.Renew(t.Ctx, ttl), "Renew by "+ttl.String())
	}
	t.refusedAsInvalid(nil, lock.Renew(nil, 0), "Renew with a nil context") //nolint:staticcheck // deliberate
	if !t.h.Can.Shared {
		t.Is(lock.Downgrade(t.Ctx), errors.ErrUnsupported, "Downgrade of an exclusive lock")
		t.Is(lock.Upgrade(t.Ctx), errors.ErrUnsupported, "Upgrade of an exclusive lock")
	}
	t.held(lock)
	t.covers(lock)
	t.refusedAsInvalid(nil, lock.Release(nil), "Release with a nil context") //nolint:staticcheck // deliberate
	t.Is(lock.Err(), locker.ErrReleased, "Err after a Release with a nil context")
	t.free(l, lock.Name())
}

func closedDriverEndsUse(t *caseT) {
	drv := t.Driver()
	l := t.locker(drv)
	renews := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	releases := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	t.Close(drv)
	_, err := l.Acquire(t.Ctx, locker.Request{Name: t.Key()})
	for what, err := range map[string]error{"Acquire": err, "Renew": renews.Renew(t.Ctx, 0), "Release": releases.Release(t.Ctx)} {
		t.Is(err, locker.ErrClosed, "%s after Close", what)
		t.isNot(err, locker.ErrNotAcquired, "%s after Close", what)
		t.isNot(err, locker.ErrNotHeld, "%s after Close", what)
		t.isNot(err, locker.ErrUnknownOutcome, "%s after Close", what)
	}
	t.held(renews)
}
