//realtime:ok each test runs in a bubble, by run of tools_test.go

package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

func TestPermitsAreCounted(t *testing.T) {
	run(t, 5, func(t *testing.T, b bench) {
		b.state(t, 0, 5)
		one, three := take(t, b, locker.Request{}), take(t, b, locker.Request{Permits: 3, Owner: "me", Note: "at work", TTL: time.Minute})
		s := b.state(t, 2, 1)
		if s.Owner != "me" || s.Note != "at work" || s.Mode != locker.Exclusive || s.Permits != 5 || s.Left != time.Minute {
			t.Errorf("state %+v, want the hold that ends last", s)
		}
		if held := refused(t, b, 2); held.Left != locker.DefaultTTL || held.Owner != "" || !held.Queue || held.Ordered || held.Foreign {
			t.Errorf("refused by %+v, want the hold that ends first", held)
		}
		last := take(t, b, locker.Request{})
		refused(t, b, 1)
		b.state(t, 3, 0)
		release(t, one)
		b.state(t, 2, 1)
		release(t, three)
		match(t, three.Release(t.Context()), locker.ErrReleased)
		b.state(t, 1, 4)
		all := take(t, b, locker.Request{Permits: 4})
		release(t, last, all)
		b.gone(t)
	})
}

// Each hold ends by itself, and its permits are free then, whatever others do.
func TestLeasesAreSeparate(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		short, mid := take(t, b, locker.Request{TTL: time.Second}), take(t, b, locker.Request{TTL: 2 * time.Second})
		long := take(t, b, locker.Request{TTL: time.Minute})
		refused(t, b, 1)
		sleep(time.Second)
		b.state(t, 2, 1)
		match(t, long.Renew(t.Context(), 0))
		match(t, short.Release(t.Context()), locker.ErrLost)
		refused(t, b, 2)
		second := take(t, b, locker.Request{TTL: 10 * time.Second})
		refused(t, b, 1)
		sleep(time.Second)
		b.state(t, 2, 1)
		_, err := leaseOf(mid).Do(t.Context(), lease.Op{Kind: lease.OpRenew, TTL: time.Hour})
		match(t, err, locker.ErrLost)
		release(t, long)
		if ttl := b.m.TTL(name); ttl != 9*time.Second {
			t.Errorf("the key ends in %v, want with its last hold", ttl)
		}
		release(t, second)
		b.gone(t)
	})
}

// The key ends with the last hold, even if nobody releases any.
func TestNoKeyStays(t *testing.T) {
	run(t, 100, func(t *testing.T, b bench) {
		for i := range 100 {
			take(t, b, locker.Request{TTL: time.Duration(100-i) * time.Second, Fenced: i%2 == 0})
		}
		refused(t, b, 1)
		if ttl := b.m.TTL(name); ttl != 100*time.Second {
			t.Errorf("the key ends in %v", ttl)
		}
		sleep(99500 * time.Millisecond)
		b.state(t, 1, 99)
		sleep(500 * time.Millisecond)
		b.gone(t)
		b.state(t, 0, 100)
	})
}

// A renewal never shortens a lease, and the last hold may end before the key once did.
func TestRenewals(t *testing.T) {
	run(t, 2, func(t *testing.T, b bench) {
		lock := take(t, b, locker.Request{TTL: time.Minute, Fenced: true})
		match(t, lock.Renew(t.Context(), time.Second))
		if s := b.state(t, 1, 1); s.Left != time.Minute {
			t.Errorf("%v left after a shorter renewal", s.Left)
		}
		match(t, lock.Renew(t.Context(), time.Hour))
		if s := b.state(t, 1, 1); s.Left != time.Hour || b.m.TTL(name) != time.Hour || b.m.TTL(counter) < 25*time.Hour {
			t.Errorf("%v left, the key ends in %v, the counter in %v", s.Left, b.m.TTL(name), b.m.TTL(counter))
		}
		release(t, lock)
	})
}

// Many permits expire at once: as many are granted again, and no more.
func TestManyExpireAtOnce(t *testing.T) {
	run(t, 2500, func(t *testing.T, b bench) {
		for range 2500 {
			take(t, b, locker.Request{TTL: 5 * time.Second})
		}
		keeper := 0
		refused(t, b, 1)
		sleep(5 * time.Second)
		take(t, b, locker.Request{TTL: time.Minute, Permits: 2000})
		for ; keeper < 500; keeper++ {
			take(t, b, locker.Request{TTL: time.Minute})
		}
		refused(t, b, 1)
		b.state(t, 501, 0)
	})
}

func TestInvalid(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		for what, cfg := range map[string]semaphore.Config{
			"no permits": {}, "negative": {Permits: -1}, "too many": {Permits: semaphore.MaxPermits + 1},
			"bad TTL": {Permits: 1, TTL: -1},
		} {
			if _, err := semaphore.New(b.drv, cfg); !errors.Is(err, locker.ErrInvalid) {
				t.Errorf("%s: error %v, want ErrInvalid", what, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin, sent := time.Now(), b.drv.Sent()
		for _, l := range []locker.Locker{b, process(b)} {
			for _, permits := range []int{-1, 4} {
				_, err := l.Acquire(ctx, locker.Request{Name: name, Permits: permits})
				match(t, err, locker.ErrInvalid)
			}
			_, err := l.Acquire(ctx, locker.Request{Name: name, Mode: locker.Shared})
			match(t, err, errors.ErrUnsupported)
		}
		if time.Since(begin) > 0 || b.drv.Sent() != sent {
			t.Error("they were not refused at once")
		}
		lock := take(t, b, locker.Request{})
		match(t, lock.Downgrade(t.Context()), errors.ErrUnsupported)
	})
}

// A different limit in two programs is an error that says both.
func TestOtherLimit(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		five := b.with(semaphore.Config{Permits: 5})
		lock := take(t, b, locker.Request{})
		for _, l := range []locker.Locker{five, process(five)} {
			_, err := l.Acquire(t.Context(), locker.Request{Name: name})
			limit, ok := errors.AsType[*semaphore.LimitError](err)
			if !ok || limit.Want != 5 || limit.Have != 3 || errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrUnknownOutcome) {
				t.Errorf("another limit: %v", err)
			} else if text := err.Error(); !strings.Contains(text, "limit of 3") || !strings.Contains(text, "is 5") {
				t.Errorf("the error does not say both limits: %v", err)
			}
		}
		match(t, lock.Renew(t.Context(), 0))
		b.state(t, 1, 2)
		release(t, lock)
		release(t, take(t, five, locker.Request{Permits: 5})) // nobody holds: there is no limit
	})
}

// A limit counts until the last hold has ended, even if the key is still there.
func TestLimitEndsWithLastHold(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		take(t, b, locker.Request{TTL: time.Second, Permits: 2})
		b.m.SetTTL(name, time.Hour)
		five := b.with(semaphore.Config{Permits: 5})
		_, err := five.Acquire(t.Context(), locker.Request{Name: name})
		if _, ok := errors.AsType[*semaphore.LimitError](err); !ok {
			t.Errorf("another limit while permits are held: %v", err)
		}
		sleep(time.Second)
		all := take(t, five, locker.Request{Permits: 5})
		refused(t, five, 1)
		release(t, all)
		b.gone(t)
	})
}

// A limit that grows counts at once; one that shrinks, as permits return.
func TestResize(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		five, two := b.with(semaphore.Config{Permits: 5, Resize: true}), b.with(semaphore.Config{Permits: 2, Resize: true})
		a, c := take(t, b, locker.Request{}), take(t, b, locker.Request{Permits: 2})
		refused(t, b, 1)
		d := take(t, five, locker.Request{Permits: 2})
		if s := b.state(t, 3, 0); s.Permits != 5 {
			t.Errorf("%d permits, want 5", s.Permits)
		}
		_, err := b.Acquire(t.Context(), locker.Request{Name: name})
		if limit, ok := errors.AsType[*semaphore.LimitError](err); !ok || limit.Want != 3 || limit.Have != 5 {
			t.Errorf("a program with the old limit: %v", err)
		}
		refused(t, two, 1)
		if s := b.state(t, 3, 0); s.Permits != 2 {
			t.Errorf("%d permits, want 2: a refused acquire sets the limit too", s.Permits)
		}
		match(t, a.Renew(t.Context(), 0))
		for _, lock := range []*locker.Lock{c, a} { // 3, then 2 are held
			release(t, lock)
			refused(t, two, 1)
		}
		release(t, d)
		release(t, take(t, two, locker.Request{Permits: 2}))
		b.gone(t)
	})
}

// Holds keep their permits over a resume, and no token is valid twice.
func TestResume(t *testing.T) {
	run(t, 4, func(t *testing.T, b bench) {
		first := take(t, b, locker.Request{Permits: 3, Fenced: true, Owner: "me", Note: "at work", TTL: time.Minute})
		handle := first.Handle()
		_, err := b.Acquire(t.Context(), locker.Request{Name: name, Resume: handle, Permits: 2})
		match(t, err, locker.ErrInvalid)
		second, err := locker.Resume(t.Context(), b, handle)
		match(t, err)
		if s := b.state(t, 1, 1); s.Owner != "me" || s.Note != "at work" || second.Fence() <= first.Fence() {
			t.Errorf("resumed with %+v, token %d after %d", s, second.Fence(), first.Fence())
		}
		_, err = locker.Resume(t.Context(), b, handle)
		match(t, err, locker.ErrNotHeld)
		match(t, first.Renew(t.Context(), 0), locker.ErrLost)
		b.state(t, 1, 1)
		refused(t, b, 2)
		_, err = leaseOf(second).Do(t.Context(), lease.Op{Kind: lease.OpUndo})
		match(t, err)
		b.state(t, 1, 1)
		third, err := b.Acquire(t.Context(), locker.Request{Name: name, Resume: handle, Permits: 3, TTL: time.Hour})
		match(t, err)
		if s := b.state(t, 1, 1); s.Left != time.Hour {
			t.Errorf("%v left", s.Left)
		}
		release(t, third)
		b.gone(t)

		foreign := locker.NewHandle(lease.Grant{Name: name, Token: lease.NewToken()})
		_, err = locker.Resume(t.Context(), b, foreign)
		match(t, err, locker.ErrInvalid)
	})
}

// Fencing tokens increase with every hold, whatever is held beside it.
func TestFence(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		last := int64(0)
		var locks []*locker.Lock
		for range 3 {
			lock := take(t, b, locker.Request{Fenced: true})
			if lock.Fence() <= last {
				t.Errorf("token %d after %d", lock.Fence(), last)
			}
			last = lock.Fence()
			locks = append(locks, lock)
		}
		want := last + 1_000_000_000_000
		term, err := leaseOf(locks[1]).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: want})
		if match(t, err); term.Fence != want {
			t.Errorf("raised to %d, want %d", term.Fence, want)
		}
		release(t, locks...)
		if lock := take(t, b, locker.Request{Fenced: true}); lock.Fence() <= want {
			t.Errorf("token %d after %d", lock.Fence(), want)
		}
		match(t, b.m.Set(counter, "no number"))
		if _, err := b.Acquire(t.Context(), locker.Request{Name: name, Fenced: true}); err == nil {
			t.Error("the counter holds no number")
		}
		b.state(t, 1, 2)
	})
}

// What is not a semaphore of this package is an error, and left alone.
func TestForeignKeys(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		for what, set := range map[string]func(){
			"a string":      func() { _ = b.m.Set(name, "x") },
			"a hash":        func() { b.m.HSet(name, "kind", "rwhash") },
			"a sorted set":  func() { _, _ = b.m.ZAdd(name, 1, "x") },
			"no count":      func() { _, _ = b.m.ZAdd(name, -3, "permits") },
			"a bad limit":   func() { _, _ = b.m.ZAdd(name, 3, "permits"); _, _ = b.m.ZAdd(name, -1, "used") },
			"half a permit": func() { _, _ = b.m.ZAdd(name, -3, "permits"); _, _ = b.m.ZAdd(name, -1.5, "used") },
			"a hold of theirs": func() {
				_, _ = b.m.ZAdd(name, -3, "permits")
				_, _ = b.m.ZAdd(name, -4, "used")
				_, _ = b.m.ZAdd(name, 1, "x")
			},
		} {
			set()
			before := b.m.Dump()
			lock, err := b.Acquire(t.Context(), locker.Request{Name: name, NoWait: true})
			if err == nil || errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrUnknownOutcome) {
				t.Errorf("%s: acquired %v, %v", what, lock, err)
			}
			if _, err := b.Inspect(t.Context(), name); err == nil && what != "a hold of theirs" {
				t.Errorf("%s: no error of Inspect", what)
			}
			if after := b.m.Dump(); after != before {
				t.Errorf("%s was changed from\n%sto\n%s", what, before, after)
			}
			b.m.Del(name)
		}
		lock := take(t, b, locker.Request{MinHold: locker.DefaultTTL})
		take(t, b, locker.Request{TTL: time.Second, Permits: 2})
		_, err := b.m.ZAdd(name, float64(time.Now().Add(2*time.Second).UnixMilli()), "x")
		match(t, err)
		sleep(2 * time.Second)
		match(t, lock.Renew(t.Context(), 0))
		release(t, lock)
		if used, err := b.m.ZScore(name, "used"); used != -4 || err != nil {
			t.Errorf("used has the score %v, %v: want -4, for none was removed", used, err)
		}
	})
}

// A hold that something else removed does not keep its permits.
func TestRemovedHold(t *testing.T) {
	run(t, 1, func(t *testing.T, b bench) {
		lock := take(t, b, locker.Request{})
		members, err := b.m.ZMembers(name)
		match(t, err)
		for _, member := range members {
			if len(member) > lease.TokenLen {
				_, err := b.m.ZRem(name, member)
				match(t, err)
			}
		}
		b.state(t, 0, 1)
		match(t, lock.Renew(t.Context(), 0), locker.ErrLost)
		release(t, take(t, b, locker.Request{}))
		b.gone(t)
	})
}
