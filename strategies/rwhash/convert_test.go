package rwhash_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// A downgrade lets no other writer in between, and wakes the waiting readers.
func TestDowngrade(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		told := b.told(t)
		lock := b.write(t, locker.Request{TTL: 10 * time.Second, Owner: "me", Note: "a note"})
		before := lock.Deadline()
		b.refused(t, reader, "me", back)
		sleep(500 * time.Millisecond)
		match(t, lock.Downgrade(t.Context()))
		if lock.Mode() != locker.Shared || lock.Handle().Mode() != locker.Shared || !lock.Deadline().Equal(before) || told() != 1 {
			t.Errorf("%v, Deadline moved by %v, told %d times", lock, lock.Deadline().Sub(before), told())
		}
		b.refused(t, writer, "me", back)
		other := b.read(t, locker.Request{})
		if state := b.holds(t, 2, locker.Shared); state.Left != locker.DefaultTTL {
			t.Errorf("state %+v", state)
		}
		match(t, lock.Downgrade(t.Context()))
		resumed, err := locker.Resume(t.Context(), b, lock.Handle())
		match(t, err)
		if state := b.holds(t, 2, locker.Shared); resumed.Mode() != locker.Shared || told() != 1 {
			t.Errorf("resumed as %v; state %+v; told %d times", resumed, state, told())
		}
		match(t, lock.Upgrade(t.Context()), locker.ErrLost)
		release(t, other)
		match(t, resumed.Upgrade(t.Context()))
		if state := b.holds(t, 1, locker.Exclusive); state.Owner != "me" || state.Note != "a note" {
			t.Errorf("state %+v", state)
		}
		release(t, resumed)
		b.free(t)
	})
}

// Waiting readers enter at the downgrade, not later.
func TestDowngradeWakesReaders(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{})))
		lock := b.write(t, locker.Request{})
		got := make(chan time.Duration)
		start := time.Now()
		for range 3 {
			go func() {
				r, err := l.Acquire(t.Context(), reader)
				match(t, err)
				got <- time.Since(start)
				release(t, r)
			}()
		}
		sleep(1234 * time.Millisecond)
		match(t, lock.Downgrade(t.Context()))
		for range 3 {
			if after := <-got; after != 1234*time.Millisecond {
				t.Errorf("a reader got in after %v, want the downgrade after 1.234s", after)
			}
		}
		release(t, lock)
		synctest.Wait()
		b.free(t)
	})
}

// The only reader can upgrade. Beside others it is refused at once, and stays a reader.
func TestUpgrade(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		told := b.told(t)
		lock := b.read(t, locker.Request{TTL: time.Minute, Owner: "me"})
		crashed := b.read(t, locker.Request{TTL: time.Second, Owner: "crashed"})
		other := b.read(t, locker.Request{TTL: time.Hour, Owner: "other", Note: "at work"})
		before, start := lock.Deadline(), time.Now()
		refused := func(owner, note string, left time.Duration) {
			t.Helper()
			err := lock.Upgrade(t.Context())
			held, ok := errors.AsType[*locker.ContentionError](err)
			if !ok || errors.Is(err, locker.ErrNotHeld) || held.Owner != owner || held.Note != note || held.RetryAfter != left || held.Name != name {
				t.Errorf("upgrade: %v, want it refused because of %q, for %v", err, owner, left)
			}
			if lock.Err() != nil || lock.Mode() != locker.Shared || held.Channel.IsZero() {
				t.Errorf("%v, %v: not held as a reader any more", lock, lock.Err())
			}
		}
		refused("other", "at work", time.Hour)
		release(t, other)
		refused("crashed", "", time.Second)
		if time.Since(start) > 0 {
			t.Errorf("the refusals took %v", time.Since(start))
		}
		sleep(time.Second)
		b.refused(t, writer, "me", back) // an intent is no hold
		match(t, lock.Upgrade(t.Context()))
		if lock.Mode() != locker.Exclusive || lock.Handle().Mode() != locker.Exclusive || !lock.Deadline().Equal(before) || told() != 0 {
			t.Errorf("%v, Deadline moved by %v, told %d times", lock, lock.Deadline().Sub(before), told())
		}
		match(t, lock.Upgrade(t.Context()))
		if state := b.holds(t, 1, locker.Exclusive); state.Left != 59*time.Second || b.m.TTL(name) != 59*time.Second {
			t.Errorf("state %+v, the key lives for %v", state, b.m.TTL(name))
		}
		b.refused(t, noWait(writer), "me", 59*time.Second)
		b.refused(t, noWait(reader), "me", 59*time.Second)
		match(t, crashed.Release(t.Context()), locker.ErrLost)
		match(t, lock.Renew(t.Context(), time.Hour))
		release(t, lock)
		b.free(t)
	})
}

// Two concurrent upgrades are both refused without waiting for each other. The reader that is left
// can upgrade.
func TestTwoUpgraders(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		one, two := b.read(t, locker.Request{TTL: time.Hour}), b.read(t, locker.Request{})
		results := make(chan error, 2)
		start := time.Now()
		for _, lock := range []*locker.Lock{one, two} {
			go func() { results <- lock.Upgrade(t.Context()) }()
		}
		for range 2 {
			match(t, <-results, locker.ErrNotAcquired)
		}
		if time.Since(start) > 0 {
			t.Errorf("it took %v", time.Since(start))
		}
		release(t, two)
		match(t, one.Upgrade(t.Context()))
		match(t, one.Downgrade(t.Context()))
		match(t, one.Upgrade(t.Context()))
		release(t, one)
		b.free(t)
	})
}

// The only live reader can upgrade, beside many expired ones.
func TestUpgradeAmongMany(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.read(t, locker.Request{TTL: time.Hour})
		for range 300 {
			b.read(t, locker.Request{TTL: time.Second})
		}
		last := b.read(t, locker.Request{TTL: 2 * time.Second})
		match(t, lock.Upgrade(t.Context()), locker.ErrNotAcquired)
		sleep(time.Second)
		match(t, lock.Upgrade(t.Context()), locker.ErrNotAcquired)
		release(t, last)
		match(t, lock.Upgrade(t.Context()))
		release(t, lock)
		b.free(t)
	})
}

// A Handle from before a conversion names no hold any more. One from after it can be resumed, and
// the numbers of conversions go on.
func TestResumeAfterConversion(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.write(t, locker.Request{})
		before := lock.Handle()
		match(t, lock.Downgrade(t.Context()))
		_, err := locker.Resume(t.Context(), b, before)
		match(t, err, locker.ErrNotHeld)
		match(t, lock.Upgrade(t.Context()))
		match(t, lock.Downgrade(t.Context()))
		h, err := locker.ParseHandle(lock.Handle().Encode())
		match(t, err)
		b.drv.Then(fault{Lose: true})
		resumed, err := locker.Resume(t.Context(), b, h)
		match(t, err)
		match(t, resumed.Upgrade(t.Context()))
		if resumed.Mode() != locker.Exclusive {
			t.Errorf("%v after an upgrade", resumed)
		}
		b.holds(t, 1, locker.Exclusive)
		_, err = locker.Resume(t.Context(), b, h)
		match(t, err, locker.ErrNotHeld)
		release(t, resumed)
		b.free(t)
	})
}
