package conformance

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// foreign is the TTL of the keys of others.
const foreign = time.Minute

var holdCases = []testCase{
	{
		name: "one holder at a time", contract: 1, on: suite.AllKinds,
		why: "this is what a lock is: others are refused until the release, and then acquire it",
		run: oneHolderAtATime,
	},
	{
		name: "one winner among many", contract: 1, on: suite.WithoutSentinel,
		why: "acquires that race for a free name must not both see it free",
		run: oneWinnerAmongMany,
	},
	{
		name: "a refusal names the holder", contract: 1, on: suite.AllKinds,
		why: "owner and note are for people; RetryAfter bounds the wait if no wake-up comes",
		run: refusalNamesHolder,
	},
	{
		name: "every hold has a token of its own", contract: 1, on: suite.WithoutSentinel,
		why: "with a repeated token an old holder could release the lock of the current one",
		run: everyHoldHasItsToken,
	},
	{
		name: "an owner alone is refused", contract: 1, on: suite.WithoutSentinel, can: notReentrant,
		why: "the owner is only a label: two workers of one owner must exclude each other",
		run: ownerAloneIsRefused,
	},
	{
		name: "the stored value is compared whole", contract: 1, on: suite.WithoutSentinel, can: stringKey,
		why: "a comparison by prefix would release or renew another holder's lock",
		run: storedIsComparedWhole,
	},
	{
		name: "the next holder is left alone", contract: 1, on: suite.WithoutSentinel,
		why: "a holder whose lease has ended must neither release nor renew the next holder's lock",
		run: nextHolderIsLeftAlone,
	},
	{
		name: "a foreign holder contends", contract: 1, on: suite.WithoutSentinel, can: stringKey,
		why: "redsync, redislock, redis-py and Spring lock the same key with SET NX; each must respect the other",
		run: foreignHolderContends,
	},
	{
		name: "a foreign value is no clock", contract: 8, on: suite.WithoutSentinel, can: stringKey,
		why: "algorithms that compare a stored time with their own clock steal the locks of slower clocks",
		run: foreignValueIsNoClock,
	},
	{
		name: "Inspect reports the holder", contract: 1, on: suite.WithoutSentinel,
		why: "people ask it when a lock does not come free",
		run: inspectReportsHolder,
	},
}

func oneHolderAtATime(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	for range 3 {
		first := t.acquire(a, locker.Request{Name: name, TTL: long})
		t.contended(a, locker.Request{Name: name, TTL: long})
		t.contended(b, locker.Request{Name: name, TTL: long, Fenced: true})
		t.held(first)
		t.OK(first.Release(t.Ctx), "Release")
		t.Is(first.Err(), locker.ErrReleased, "Err after Release")
		a, b = b, a
	}
	t.gone(name, "after the last release")
}

func oneWinnerAmongMany(t *caseT) {
	lockers := []locker.Locker{t.direct(), t.direct()}
	for round := range 10 {
		name := t.Key()
		var wg sync.WaitGroup
		var won atomic.Int32
		for i := range 8 {
			wg.Go(func() {
				lock, err := lockers[i%2].Acquire(t.Ctx, locker.Request{Name: name, TTL: long, Fenced: i%3 == 0})
				switch {
				case err == nil && lock != nil:
					t.releaseLater(lock)
					won.Add(1)
				case !errors.Is(err, locker.ErrNotAcquired):
					t.Errorf("Acquire: %v", err)
				}
			})
		}
		wg.Wait()
		if n := won.Load(); n != 1 {
			t.Fatalf("round %d: %d of 8 acquires of one name succeeded, want 1", round, n)
		}
	}
}

func refusalNamesHolder(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	const owner, note = "worker 7|%\x00", "nightly run, see trace | 42"
	first := t.acquire(a, locker.Request{Name: name, TTL: long, Owner: owner, Note: note})
	if first.Owner() != owner || first.Name() != name || first.Mode() != locker.Exclusive || first.TTL() != long {
		t.Errorf("the lock reports owner %q, name %q, %v, TTL %v", first.Owner(), first.Name(), first.Mode(),
			first.TTL())
	}
	for _, noWait := range []bool{false, true} {
		ce := t.contended(b, locker.Request{Name: name, NoWait: noWait})
		if ce.Name != name || ce.Owner != owner || ce.Note != note {
			t.Errorf("the refusal has the name %q, owner %q, note %q", ce.Name, ce.Owner, ce.Note)
		}
		if ce.RetryAfter <= 0 || ce.RetryAfter > long {
			t.Errorf("RetryAfter is %v, want at most %v and more than 0", ce.RetryAfter, long)
		}
		if !t.Lacks(suite.FeatureSubscribe) && ce.Channel.IsZero() {
			t.Errorf("the refusal has no channel of releases")
		}
	}
	_, err := b.Acquire(t.Ctx, locker.Request{Name: name})
	if text := err.Error(); !strings.Contains(text, "worker 7") || !strings.Contains(text, "middleware/retry") {
		t.Errorf("the refusal %q does not name the holder, or report that only one attempt was made and middleware/retry waits", text)
	}
	var oe *locker.OpError
	if !errors.As(err, &oe) || oe.Op != "acquire" || oe.Name != name {
		t.Errorf("the refusal is no *locker.OpError of this acquire: %#v", err)
	}
	t.OK(first.Release(t.Ctx), "Release")

	anonymous := t.acquire(a, locker.Request{Name: name, TTL: long})
	if ce := t.contended(b, locker.Request{Name: name}); ce.Note != "" {
		t.Errorf("a hold without a note shows the note %q", ce.Note)
	}
	t.OK(anonymous.Release(t.Ctx), "Release")
}

func everyHoldHasItsToken(t *caseT) {
	l, name := t.direct(), t.Key()
	seen := map[string]bool{}
	for range 20 {
		lock := t.acquire(l, locker.Request{Name: name, TTL: long, Owner: "always the same"})
		token := lock.Handle().Info().Token
		if seen[token] {
			t.Fatalf("two holds have the same token")
		}
		if len(token) < lease.TokenLen {
			t.Errorf("the token has %d characters, too few for 128 random bits", len(token))
		}
		seen[token] = true
		if shown := lock.Handle().String(); strings.Contains(shown, token) {
			t.Errorf("a printed Handle shows the token")
		}
		t.OK(lock.Release(t.Ctx), "Release")
	}
}

func ownerAloneIsRefused(t *caseT) {
	l, name := t.direct(), t.Key()
	first := t.acquire(l, locker.Request{Name: name, TTL: long, Owner: "me"})
	t.contended(l, locker.Request{Name: name, TTL: long, Owner: "me"})
	t.contended(l, locker.Request{Name: name, TTL: long, Owner: "me", Fenced: true})
	t.OK(first.Release(t.Ctx), "Release")
}

// almostOurs change the stored value into one that another holder might have.
var almostOurs = map[string]func(string) string{
	"longer":  func(v string) string { return v + "x" },
	"shorter": func(v string) string { return v[:len(v)-1] },
	"owner":   func(v string) string { return v + "|other|" },
	"empty":   func(string) string { return "" },
}

func storedIsComparedWhole(t *caseT) {
	l := t.direct()
	for what, change := range almostOurs {
		for _, use := range []string{"release", "renew"} {
			t.lostTo(use, "a "+what+" value is stored", func() (*locker.Lock, func()) {
				name := t.Key()
				lock := t.acquire(l, locker.Request{Name: name, TTL: long})
				value, _ := t.Stored(name)
				theirs := change(value)
				t.Do(name, "SET", name, theirs, "PX", foreign.Milliseconds())
				return lock, func() {
					if v, _ := t.Stored(name); v != theirs || t.PTTL(name) > foreign {
						t.Errorf("%s took a %s value for its own: now %q for %v", use, what, v, t.PTTL(name))
					}
				}
			})
		}
	}
}

func nextHolderIsLeftAlone(t *caseT) {
	a, b := t.direct(), t.direct()
	for _, use := range []string{"release", "renew"} {
		t.lostTo(use, "another has begun", func() (*locker.Lock, func()) {
			name := t.Key()
			first := t.acquire(a, locker.Request{Name: name, TTL: long})
			t.Do(name, "DEL", name) // as if it had expired: the server's clock is ahead
			second := t.acquire(b, locker.Request{Name: name, TTL: long})
			before := t.PTTL(name)
			return first, func() {
				t.endedBy(use, first)
				if after := t.PTTL(name); after > before {
					t.Errorf("%s of the first holder extended the second's lease", use)
				}
				t.contended(a, locker.Request{Name: name})
				t.OK(second.Renew(t.Ctx, 0), "Renew of the second holder")
				t.OK(second.Release(t.Ctx), "Release of the second holder")
			}
		})
	}
}

// lostTo releases or renews a hold acquired and lost by lose. It demands ErrLost, and calls check.
// On a slow server a release may be sent twice, and succeed: the second send finds nothing, as
// after the success of the first.
func (t *caseT) lostTo(use, where string, lose func() (lock *locker.Lock, check func())) {
	t.Helper()
	lock, check := lose()
	var err error
	if use == "release" {
		err = lock.Release(t.Ctx)
	} else {
		err = lock.Renew(t.Ctx, 2*long)
	}
	check()
	if use == "renew" || err != nil || t.InFakeTime() {
		t.Is(err, locker.ErrLost, "%s where %s", use, where)
	}
}

// endedBy demands the state of a lost hold after a release or a renewal.
func (t *caseT) endedBy(use string, lock *locker.Lock) {
	t.Helper()
	if use == "release" {
		t.Is(lock.Err(), locker.ErrReleased, "Err after Release")
		return
	}
	t.lost(lock)
}

func foreignHolderContends(t *caseT) {
	l, name := t.direct(), t.Key()
	for _, value := range []string{
		"bm90IG91cnM=", "", "7", "a|b|c", lease.NewToken() + "|", lease.NewToken() + "|a", lease.NewToken() + "|a|b|c",
		strings.Repeat("x", 5000),
	} {
		t.Do(name, "SET", name, value, "PX", foreign.Milliseconds())
		for _, fenced := range []bool{false, true} {
			ce := t.contended(l, locker.Request{Name: name, TTL: long, Fenced: fenced})
			if ce.Owner != "" || ce.Note != "" {
				t.Errorf("the foreign value %.40q is shown as owner %q, note %q", value, ce.Owner, ce.Note)
			}
			if ce.RetryAfter <= 0 || ce.RetryAfter > foreign {
				t.Errorf("RetryAfter is %v, want at most %v and more than 0", ce.RetryAfter, foreign)
			}
		}
		if v, _ := t.Stored(name); v != value || t.PTTL(name) > foreign {
			t.Errorf("the foreign value %.40q was changed to %.40q for %v", value, v, t.PTTL(name))
		}
	}
	t.Do(name, "SET", name, "for ever")
	if ce := t.contended(l, locker.Request{Name: name, TTL: long}); ce.RetryAfter != 0 {
		t.Errorf("RetryAfter is %v where the key never expires, want 0: unknown", ce.RetryAfter)
	}
	if left := t.PTTL(name); left != suite.NeverExpires {
		t.Errorf("a foreign key without an end now ends in %v", left)
	}
	t.Do(name, "DEL", name)

	lock := t.acquire(l, locker.Request{Name: name, TTL: long})
	if reply := t.Do(name, "SET", name, "theirs", "NX", "PX", foreign.Milliseconds()); reply != nil {
		t.Errorf("a foreign SET NX on our lock was answered %v", reply)
	}
	t.OK(lock.Release(t.Ctx), "Release")
	if reply := t.Do(name, "SET", name, "theirs", "NX", "PX", foreign.Milliseconds()); reply != "OK" {
		t.Errorf("a foreign SET NX after our release was answered %v", reply)
	}
}

func foreignValueIsNoClock(t *caseT) {
	l, now := t.direct(), time.Now()
	for _, past := range []time.Duration{0, time.Hour} {
		then := now.Add(-past)
		for what, value := range map[string]any{
			"s": then.Unix(), "ms": then.UnixMilli(), "us": then.UnixMicro(), "ns": then.UnixNano(),
			"float": float64(then.UnixMilli()) / 1000, "text": then.Format(time.RFC3339Nano),
		} {
			name := t.Key()
			t.Do(name, "SET", name, value, "PX", foreign.Milliseconds())
			t.contended(l, locker.Request{Name: name, TTL: long})
			if left := t.PTTL(name); left <= 0 || left > foreign {
				t.Errorf("%s: the lease of a holder whose value is the time %v ago now ends in %v", what, past, left)
			}
		}
	}
}

func inspectReportsHolder(t *caseT) {
	l, name := t.direct(), t.Key()
	in, ok := lease.Find[locker.Inspector](unwrap(l))
	if !ok {
		t.Fatalf("%T is no locker.Inspector", l)
	}
	state, err := in.Inspect(t.Ctx, name)
	t.OK(err, "Inspect of a free name")
	state.Permits, state.Free = 0, 0
	if state != (locker.State{}) {
		t.Errorf("a free name has the state %+v", state)
	}
	lock := t.acquire(l, locker.Request{Name: name, TTL: long, Owner: "me", Note: "why"})
	state, err = in.Inspect(t.Ctx, name)
	t.OK(err, "Inspect")
	left := state.Left
	state.Left, state.Permits, state.Free = 0, 0, 0
	if t.h.Around != nil { // tracing puts its context behind the note
		state.Note, _, _ = strings.Cut(state.Note, " ")
	}
	if want := (locker.State{Held: true, Owner: "me", Note: "why", Holds: 1}); state != want || left <= 0 ||
		left > long {
		t.Errorf("the state is %+v for %v, want %+v for at most %v", state, left, want, long)
	}
	t.OK(lock.Release(t.Ctx), "Release")
	state, err = in.Inspect(t.Ctx, name)
	t.OK(err, "Inspect after the release")
	if state.Held {
		t.Errorf("a released name has the state %+v", state)
	}
	lock = t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: true})
	state, err = in.Inspect(t.Ctx, name)
	t.OK(err, "Inspect of a fenced hold")
	if state.Fence != 0 && state.Fence != lock.Fence() {
		t.Errorf("the state has the fencing token %d, the lock %d", state.Fence, lock.Fence())
	}
	t.OK(lock.Release(t.Ctx), "Release")
	_, err = in.Inspect(t.Ctx, "")
	t.Is(err, locker.ErrInvalid, "Inspect of an empty name")
}
