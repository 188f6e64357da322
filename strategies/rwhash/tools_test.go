package rwhash_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

const (
	name    = "job"
	counter = "{job}:fence"

	bound = 5 * time.Second        // Config.WriterTurn's default
	life  = time.Second            // of an intent
	back  = 400 * time.Millisecond // when a waiter tries again at the latest
	herd  = 10 * time.Millisecond  // of a turn, after its first reader
)

var modes = []locker.Mode{locker.Shared, locker.Exclusive}

// fault is what happens to one command.
type fault = faultdriver.Fault

// bench is a server in memory, in fake time, and a Locker on it.
type bench struct {
	*rwhash.Locker
	drv *faultdriver.Driver
	m   *miniredis.Miniredis
}

func run(t *testing.T, f func(t *testing.T, b bench)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		drv := &faultdriver.Driver{Driver: clients.OpenMemory(t, m), T: t}
		t.Cleanup(drv.WaitLate)
		f(t, bench{locker.Must(rwhash.New(drv, rwhash.Config{AttemptTimeout: time.Second})), drv, m})
	})
}

func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // fake time

// read and write acquire, for the owners "reader" and "writer" unless req has another.
func (b bench) read(t *testing.T, req locker.Request) *locker.Lock {
	t.Helper()
	return b.have(t, asReader(req))
}

func (b bench) write(t *testing.T, req locker.Request) *locker.Lock {
	t.Helper()
	return b.have(t, asWriter(req))
}

func (b bench) have(t *testing.T, req locker.Request) *locker.Lock {
	t.Helper()
	lock, err := b.Acquire(t.Context(), req)
	if err != nil {
		t.Fatalf("acquire %v: %v", req.Mode, err)
	}
	if lock.Mode() != req.Mode {
		t.Errorf("the Lock says %v, want %v", lock.Mode(), req.Mode)
	}
	return lock
}

func asReader(req locker.Request) locker.Request {
	req.Name, req.Mode = name, locker.Shared
	if req.Owner == "" {
		req.Owner = "reader"
	}
	return req
}

func asWriter(req locker.Request) locker.Request {
	req.Name, req.Mode = name, locker.Exclusive
	if req.Owner == "" {
		req.Owner = "writer"
	}
	return req
}

// refused fails the test unless req is refused because of owner, with that time for the next
// attempt. It returns how long that holder's lease lasts.
func (b bench) refused(t *testing.T, req locker.Request, owner string, again time.Duration) (left time.Duration) {
	t.Helper()
	_, err := b.Acquire(t.Context(), req)
	held, ok := errors.AsType[*locker.ContentionError](err)
	if !ok || !errors.Is(err, locker.ErrNotAcquired) {
		t.Fatalf("acquire %v: %v, want contention", req.Mode, err)
	}
	if held.Name != name || held.Owner != owner || held.RetryAfter != again || held.Channel.IsZero() {
		t.Errorf("%v refused because of %q %q, try again in %v; want %q, %v", req.Mode, held.Owner, held.Note, held.RetryAfter, owner, again)
	}
	if !held.Ordered {
		t.Errorf("%v refused by an unordered lock", req.Mode)
	}
	return held.Left
}

// noWait returns req with NoWait: a refusal of it leaves no trace at the server.
func noWait(req locker.Request) locker.Request {
	req.NoWait = true
	return req
}

var (
	reader = asReader(locker.Request{})
	writer = asWriter(locker.Request{})
)

// holds fails the test unless there are that many live holds, and returns the State.
func (b bench) holds(t *testing.T, want int, mode locker.Mode) {
	t.Helper()
	state, err := b.Inspect(t.Context(), name)
	if err != nil || state.Holds != want || state.Held != (want > 0) || state.Mode != mode {
		t.Errorf("state %+v, %v; want %d holds, %v", state, err, want, mode)
	}
	if last := b.m.HGet(name, "last"); want > 0 && b.m.HGet(name, last) == "" {
		t.Errorf("there is no hold %q, which should be the last to end", last)
	}
}

// free fails the test if anything is left.
func (b bench) free(t *testing.T) {
	t.Helper()
	b.holds(t, 0, locker.Exclusive)
	if b.m.Exists(name) {
		t.Errorf("the key is still there:\n%s", b.m.Dump())
	}
}

func release(t *testing.T, locks ...*locker.Lock) {
	t.Helper()
	for _, lock := range locks {
		match(t, lock.Release(t.Context()))
	}
}

// match fails the test unless err matches all of want; without want, unless err is nil.
func match(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("error %v does not match %v", err, w)
		}
	}
	if len(want) == 0 && err != nil {
		t.Errorf("error %v, want none", err)
	}
}

// leaseOf returns the Lease inside lock. It sends commands even after the Lock has ended.
func leaseOf(lock *locker.Lock) (found lease.Lease) {
	lock.Hold().Wrap(func(l lease.Lease) lease.Lease { found = l; return l })
	return found
}
