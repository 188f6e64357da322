package rwhash_test

import (
	"cmp"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/memredis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

const (
	name    = "job"
	counter = "{job}:fence"

	bound  = 5 * time.Second        // Config.WriterTurn's default
	places = 5 * time.Second        // a waiter's place lasts this long after an attempt
	toTry  = 500 * time.Millisecond // for a woken waiter to try
	herd   = 10 * time.Millisecond  // of a turn, after its first reader
	polls  = 2 * time.Second        // a waiting reader tries again after this at the latest
)

var (
	modesByName = map[string]locker.Mode{"shared": locker.Shared, "exclusive": locker.Exclusive}
	reader      = asReader(locker.Request{})
	writer      = asWriter(locker.Request{})

	match, release, sleep = check.Is, locktest.Release, locktest.Sleep
)

// fault is the fate of one command.
type fault = faultdriver.Fault

// bench is a server in memory, in fake time, and a Locker on it.
type bench struct {
	*rwhash.Locker
	drv *faultdriver.Driver
	m   *memredis.Server
}

func run(t *testing.T, f func(t *testing.T, b bench)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, drv := locktest.Memory(t)
		f(t, bench{locker.Must(rwhash.New(drv, rwhash.Config{AttemptTimeout: time.Second})), drv, m})
		sleep(time.Millisecond) // middleware/retry may send another command behind a release
	})
}

// eachRun runs f as run does, for each entry of a table.
func eachRun[T any](t *testing.T, tests map[string]T, f func(t *testing.T, b bench, tt T)) {
	t.Parallel()
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) { f(t, b, tt) })
		})
	}
}

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
	lock := locker.Must(b.Acquire(t.Context(), req))
	check.Equal(t, "mode of the Lock", lock.Mode(), req.Mode)
	return lock
}

func asReader(req locker.Request) locker.Request { return as(locker.Shared, "reader", req) }
func asWriter(req locker.Request) locker.Request { return as(locker.Exclusive, "writer", req) }

func as(mode locker.Mode, owner string, req locker.Request) locker.Request {
	req.Name, req.Mode, req.Owner = name, mode, cmp.Or(req.Owner, owner)
	return req
}

// refused fails the test unless req is refused because of owner, with again as the time for the
// next attempt. It returns the rest of the holder's lease.
func (b bench) refused(t *testing.T, req locker.Request, owner string, again time.Duration) (left time.Duration) {
	t.Helper()
	_, err := b.Acquire(t.Context(), req)
	held := locktest.Refusal(t, err)
	if held.Name != name || held.Owner != owner || held.RetryAfter != again || held.Channel.IsZero() {
		t.Errorf("%v refused with %+v; want because of %q, to try again in %v", req.Mode, held, owner, again)
	}
	return held.Left
}

// waiter is a waiting request, as of middleware/retry.
type waiter struct {
	b   bench
	id  string
	ctx context.Context //nolint:containedctx // of its attempts
	req locker.Request
}

// waits returns a waiter after a wait of d.
func (b bench) waits(t *testing.T, req locker.Request, d time.Duration) waiter {
	id := lease.NewToken()
	return waiter{b, id, lease.WithWaiting(t.Context(), lease.Waiting{ID: id, Since: time.Now().Add(-d)}), req}
}

func (w waiter) try(t *testing.T) (*locker.Lock, error) {
	t.Helper()
	return w.b.Acquire(w.ctx, w.req)
}

func (w waiter) acquired(t *testing.T) *locker.Lock {
	t.Helper()
	return locker.Must(w.try(t))
}

// refused fails the test unless an attempt is refused because of owner, with again as the time for
// the next attempt, and up to 3 ms for the waiters ahead; 0: with any.
func (w waiter) refused(t *testing.T, owner string, again time.Duration) {
	t.Helper()
	_, err := w.try(t)
	if held := locktest.Refusal(t, err); held.Owner != owner || again != 0 && (held.RetryAfter < again || held.RetryAfter > again+3*time.Millisecond) {
		t.Errorf("%v refused with %+v; want because of %q, to try again in %v", w.req.Mode, held, owner, again)
	}
}

// noWait returns req with NoWait: a refusal of it leaves no trace at the server.
func noWait(req locker.Request) locker.Request {
	req.NoWait = true
	return req
}

// holds fails the test unless there are want live holds, in this mode.
func (b bench) holds(t *testing.T, want int, mode locker.Mode) {
	t.Helper()
	check.Equal(t, "mode", locktest.Holds(t, b, b.m, name, want).Mode, mode)
}

// free fails the test if anything is left.
func (b bench) free(t *testing.T) {
	t.Helper()
	b.holds(t, 0, locker.Exclusive)
	locktest.Gone(t, b.m, name)
}
