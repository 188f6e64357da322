//realtime:ok each test runs in a bubble, by run of tools_test.go

package rwhash_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
)

// Among many readers, live and expired, a writer enters if and only if none is live, and the key
// lasts as long as they do.
func TestManyReadersAreKnownExactly(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		random := rand.New(rand.NewPCG(1, 2))
		long := []time.Duration{5 * time.Second, 20 * time.Second, time.Minute}
		short := []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second}
		var readers []*locker.Lock
		largest := 0
		for step := range effort.Of(500, 500, 5000) {
			crowd, ttls := step/250%2 == 0, long // they come, then they go
			if step%250 >= 150 {
				ttls = short
			}
			switch n := random.IntN(20); {
			case n < 15 && crowd:
				lock, err := b.Acquire(t.Context(), noWait(asReader(locker.Request{TTL: ttls[random.IntN(len(ttls))]})))
				match(t, err)
				readers = append(readers, lock)
			case n < 16 && len(readers) > 0:
				_ = readers[random.IntN(len(readers))].Renew(t.Context(), ttls[random.IntN(len(ttls))]) // may be lost
			case n < 18 && len(readers) > 0:
				i := random.IntN(len(readers))
				_ = readers[i].Release(t.Context()) // may be lost
				readers[i] = readers[len(readers)-1]
				readers = readers[:len(readers)-1]
			case n == 18 && step%250 == 240:
				sleep(time.Second)
			case n == 18:
				sleep(time.Duration(random.IntN(200)) * time.Millisecond)
			case n == 19 && random.IntN(40) == 0:
				sleep(10 * time.Second)
			}
			if step%3 == 0 {
				largest = max(largest, b.checkMany(t))
			}
			if t.Failed() {
				t.Fatalf("in step %d, with %d readers:\n%s", step, len(readers), b.m.Dump())
			}
		}
		check.AtLeast(t, "fields, so that the test is large enough", largest, 100)
		b.m.Del(name)
	})
}

// checkMany compares the summary in the hash with all its fields, and returns their number.
func (b bench) checkMany(t *testing.T) int {
	t.Helper()
	fields, _ := b.m.HKeys(name)
	now, latest, live := time.Now().UnixMilli(), int64(0), 0
	recent := b.m.HGet(name, "recent")
	beyond, _ := strconv.ParseInt(b.m.HGet(name, "beyond"), 10, 64)
	for _, f := range fields {
		digits, _, _ := strings.Cut(b.m.HGet(name, f), " ")
		till, _ := strconv.ParseInt(digits, 10, 64)
		if len(f) != lease.TokenLen || till <= now {
			continue
		}
		live, latest = live+1, max(latest, till)
		if b.m.HGet(name, "beyond") != "" && till > beyond && !strings.Contains(recent, f) {
			t.Errorf("a live hold is neither in recent nor ends by beyond")
		}
	}
	if live > 0 && b.m.TTL(name) < time.Duration(latest-now)*time.Millisecond {
		t.Errorf("the key ends in %v, its latest hold in %d ms", b.m.TTL(name), latest-now)
	}
	lock, err := b.Acquire(t.Context(), noWait(asWriter(locker.Request{})))
	switch {
	case live > 0 && !errors.Is(err, locker.ErrNotAcquired):
		t.Errorf("a writer beside %d live readers: %v", live, err)
	case live == 0 && err != nil:
		t.Errorf("a writer beside no live reader: %v", err)
	case err == nil:
		match(t, lock.Release(t.Context()))
	}
	return len(fields)
}

// The readers with the latest ends are released first, one by one: while one is left, no writer
// enters, and the key lasts.
func TestTheLatestOfManyReadersGoFirst(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		var readers []*locker.Lock
		for i := range 4000 { // dead ones: most looks at some find no other
			b.m.HSet(name, fmt.Sprintf("%022d", i), "1 0 0:")
		}
		b.m.HSet(name, "kind", "rwhash")
		b.m.SetTTL(name, time.Second)
		for i := range 130 {
			readers = append(readers, b.read(t, locker.Request{TTL: time.Minute + time.Duration(i)*time.Millisecond}))
		}
		for i, lock := range slices.Backward(readers) {
			b.checkMany(t)
			match(t, lock.Release(t.Context()))
			if t.Failed() {
				t.Fatalf("with %d readers:\n%s", i, b.m.Dump())
			}
		}
		b.free(t)
	})
}

// The field recent is not relied on while another hold may end later.
func TestAHoldBeyondTheRecentOnesKeepsItsKey(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		till := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).UnixMilli(), 10) }
		sooner, later := strings.Repeat("s", lease.TokenLen), strings.Repeat("l", lease.TokenLen)
		for i := range 100 {
			b.m.HSet(name, fmt.Sprintf("%022d", i), "1 0 0:")
		}
		b.m.HSet(name, "kind", "rwhash", "last", "gone", sooner, till(time.Minute)+" 0 0:", later, till(time.Hour)+" 0 0:",
			"recent", sooner, "beyond", till(time.Hour))
		b.m.SetTTL(name, time.Hour)
		b.checkMany(t) // a writer is refused, and its findings are written down
		b.checkMany(t)
		sleep(2 * time.Minute)
		b.checkMany(t)
		sleep(time.Hour)
		b.checkMany(t)
		b.free(t)
	})
}

// A short hold in a key that somebody left without an expiry does not end the others.
func TestKeyWithoutExpiry(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		b.read(t, locker.Request{TTL: time.Hour})
		b.m.HSet(name, "rough", "0") // as after many holds
		_, err := b.drv.Eval(t.Context(), driver.NewScript(`return redis.call('PERSIST', KEYS[1])`), []string{name}, nil)
		check.Must(t, err)
		b.read(t, locker.Request{TTL: time.Second})
		sleep(2 * time.Second)
		locktest.Holds(t, b, b.m, name, 1)
	})
}

// The only live reader can upgrade, beside many expired ones; they are removed soon.
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
		b.holds(t, 1, locker.Exclusive)
		b.refused(t, noWait(reader), "reader", time.Hour-time.Second)
		match(t, lock.Downgrade(t.Context()))
		for range 5 { // each removes some
			match(t, lock.Upgrade(t.Context()))
			match(t, lock.Downgrade(t.Context()))
		}
		if fields, err := b.m.HKeys(name); err != nil || len(fields) > 3 {
			t.Errorf("%d fields are left, %v", len(fields), err)
		}
		release(t, lock)
		b.free(t)
	})
}
