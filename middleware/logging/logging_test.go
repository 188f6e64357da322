package logging_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/internal/observetest"
	"github.com/holdfast-go/holdfast/middleware/logging"
)

var elapse, waitsFor = observetest.Elapse, observetest.WaitsFor

// book keeps a line for each record.
type book struct{ check.Buffer }

func (b *book) lines() []string { return strings.Split(strings.TrimSpace(b.String()), "\n") }

// logger logs to b, without the time: it is the same in every run.
func (b *book) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

const (
	foreign = "traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	lost    = `level=ERROR msg="lock lost" lock=job mode=exclusive strategy=lockertest provider=memory address="" outcome=lost `
	failing = `level=WARN msg="lock renewals fail" lock=job mode=exclusive strategy=lockertest provider=memory address="" `
)

func TestRecords(t *testing.T) {
	t.Parallel()
	hold := func(l *lockertest.Locker) {
		l.Hold(locker.Request{Name: "job", Owner: "w7", Note: "nightly " + foreign, TTL: 20 * time.Second})
	}
	fail := func(err error) func(*lockertest.Locker) { return func(l *lockertest.Locker) { l.FailAcquire(err) } }
	type test struct {
		before func(*lockertest.Locker)
		cfg    logging.Config
		req    locker.Request
		cancel time.Duration // when the caller gives up; 0: never
		use    func(t *testing.T, server *lockertest.Locker, lock *locker.Lock)
		want   []string
	}
	check.EachInFakeTime(t, map[string]test{
		"all goes well": {want: []string{""}},
		"refused": {
			before: hold, req: locker.Request{NoWait: true}, want: []string{
				`level=DEBUG msg="lock contended" lock=job mode=exclusive holder_note=nightly lease_left=20s`,
			},
		},
		"refused by a holder whose note is no text": {
			req: locker.Request{NoWait: true}, want: []string{
				"level=DEBUG msg=\"lock contended\" lock=job mode=exclusive holder_note=\"a\uFFFDb\" lease_left=20s",
			},
			before: func(l *lockertest.Locker) { l.Hold(locker.Request{Name: "job", Note: "a\xffb", TTL: 20 * time.Second}) },
		},
		"refused, owners asked for, louder": {
			before: hold, cfg: logging.Config{ShowOwner: true, ContendedLevel: slog.LevelInfo},
			req: locker.Request{NoWait: true}, want: []string{
				`level=INFO msg="lock contended" lock=job mode=exclusive holder_owner=w7 holder_note=nightly lease_left=20s`,
			},
		},
		"a slow wait in vain": {
			before: hold, req: locker.Request{MaxWait: 7 * time.Second}, want: []string{
				`level=DEBUG msg="lock contended" lock=job mode=exclusive holder_note=nightly lease_left=20s`,
				`level=WARN msg="lock wait is slow" lock=job mode=exclusive waited=1s`,
				`level=WARN msg="slow lock wait ended" lock=job mode=exclusive outcome=timeout waited=7s attempts=3 holder_note=nightly lease_left=13s`,
			},
		},
		"a slow wait that was called off": {
			before: hold, cancel: 5500 * time.Millisecond, cfg: logging.Config{SlowWait: 5 * time.Second, SlowLevel: slog.LevelInfo},
			want: []string{
				`level=DEBUG msg="lock contended" lock=job mode=exclusive holder_note=nightly lease_left=20s`,
				`level=INFO msg="lock wait is slow" lock=job mode=exclusive waited=5s`,
				`level=INFO msg="slow lock wait ended" lock=job mode=exclusive outcome=cancelled waited=5.5s attempts=2 holder_note=nightly lease_left=14.5s`,
			},
		},
		"a slow wait with success": {
			before: hold, req: locker.Request{Mode: locker.Shared}, want: []string{
				`level=DEBUG msg="lock contended" lock=job mode=shared holder_note=nightly lease_left=20s`,
				`level=WARN msg="lock wait is slow" lock=job mode=shared waited=1s`,
				`level=WARN msg="slow lock wait ended" lock=job mode=shared outcome=acquired waited=20.001s attempts=8 holder_note=nightly`,
			},
		},
		"an outage is no contention, but a slow wait": {
			before: fail(io.EOF), want: []string{
				`level=WARN msg="lock wait is slow" lock=job mode=exclusive waited=1s`,
				`level=WARN msg="slow lock wait ended" lock=job mode=exclusive outcome=acquired waited=3s attempts=2`,
			},
		},
		"an outage that lasts": {
			before: func(l *lockertest.Locker) {
				for range 3 {
					l.FailAcquire(io.EOF)
				}
			}, req: locker.Request{MaxWait: 8 * time.Second}, want: []string{
				`level=WARN msg="lock wait is slow" lock=job mode=exclusive waited=1s`,
				`level=WARN msg="slow lock wait ended" lock=job mode=exclusive outcome=error waited=8s attempts=3 error_type=eof ` +
					`error="holdfast: acquire \"job\": EOF; gave up after 8s and 3 attempts: MaxWait passed"`,
			},
		},
		"an outage within the first attempt": {
			before: func(l *lockertest.Locker) { l.SetOutage(lockertest.Silent) }, req: locker.Request{MaxWait: 8 * time.Second}, want: []string{
				`level=WARN msg="lock wait is slow" lock=job mode=exclusive waited=1s`,
				`level=WARN msg="slow lock wait ended" lock=job mode=exclusive outcome=unknown waited=8s attempts=1 error_type=unknown_outcome ` +
					`error="holdfast: acquire \"job\": no answer from the server in 8s; the outcome of the last attempt is unknown; gave up after 8s and 1 attempt: MaxWait passed"`,
			},
		},
		"an outage after a refusal": {
			before: func(l *lockertest.Locker) {
				hold(l)
				time.AfterFunc(time.Second, func() { l.SetOutage(lockertest.Silent) })
			}, req: locker.Request{MaxWait: 8 * time.Second}, want: []string{
				`level=DEBUG msg="lock contended" lock=job mode=exclusive holder_note=nightly lease_left=20s`,
				`level=WARN msg="lock wait is slow" lock=job mode=exclusive waited=1s`,
				`level=WARN msg="slow lock wait ended" lock=job mode=exclusive outcome=unknown waited=8s attempts=2 holder_note=nightly error_type=unknown_outcome ` +
					`error="holdfast: acquire \"job\": no answer from the server in 5s; the last answer, 8s ago: lock is held by another, note \"nightly\", ` +
					`for 20s at most unless renewed; the outcome of the last attempt is unknown; gave up after 8s and 2 attempts: MaxWait passed"`,
			},
		},
		"an error is the caller's to log": {before: fail(&driver.ServerError{Text: "WRONGTYPE x"}), want: []string{""}},
		"forgotten": {
			use: func(*testing.T, *lockertest.Locker, *locker.Lock) { elapse(time.Minute) }, want: []string{
				lost + `held=30s error_type=lost error="holdfast: lock \"job\" was lost: its Deadline passed before it was renewed"`,
			},
		},
		"lost, then released": {
			cfg: logging.Config{LostLevel: slog.LevelWarn},
			use: func(t *testing.T, server *lockertest.Locker, lock *locker.Lock) {
				elapse(time.Second)
				server.Expire("job")
				_ = lock.Release(t.Context())
			}, want: []string{strings.Replace(lost, "ERROR", "WARN", 1) + `held=1s error_type=lost error="holdfast: lock \"job\" was lost: expired by the test"`},
		},
		"found gone by the release": {
			use: func(t *testing.T, server *lockertest.Locker, lock *locker.Lock) {
				server.FailRelease(locker.ErrLost)
				_ = lock.Release(t.Context())
			}, want: []string{lost + `held=0s error_type=lost error="holdfast: release \"job\": lock was lost: its key was gone at the release (ended by Break, deleted, expired, or the server lost its data)"`},
		},
		"renewals fail, recover and fail again": {
			use: func(t *testing.T, server *lockertest.Locker, lock *locker.Lock) {
				for _, err := range []error{nil, io.EOF, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, io.EOF), nil, nil, io.EOF} {
					elapse(time.Second)
					if err != nil {
						server.FailRenew(err)
					}
					check.Error(t, "Renew", lock.Renew(t.Context(), 0), err)
				}
				_, _ = lock.Renew(t.Context(), -1), lock.Release(t.Context())
				_ = lock.Renew(t.Context(), 0)
			}, want: []string{
				failing + `left=29s error_type=eof error="holdfast: renew \"job\": EOF"`,
				`level=INFO msg="lock renewals recovered" lock=job mode=exclusive strategy=lockertest provider=memory address="" failures=2 failed_for=2s`,
				failing + `left=29s error_type=eof error="holdfast: renew \"job\": EOF"`,
			},
		},
		"a renewal that finds the lock gone": {
			use: func(t *testing.T, server *lockertest.Locker, lock *locker.Lock) {
				server.FailRenew(locker.ErrNotHeld)
				_ = lock.Renew(t.Context(), 0)
			}, want: []string{lost + `held=0s error_type=lost error="holdfast: lock \"job\" was lost: its key was gone at the renewal (ended by Break, deleted, expired, or the server lost its data)"`},
		},
		"release of unknown outcome": {
			use: func(t *testing.T, server *lockertest.Locker, lock *locker.Lock) {
				server.FailRelease(fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, io.EOF))
				_ = lock.Release(t.Context())
			}, want: []string{
				`level=ERROR msg="lock release failed" lock=job mode=exclusive strategy=lockertest provider=memory address="" outcome=unknown held=0s ` +
					`error_type=unknown_outcome error="holdfast: release \"job\": outcome is unknown: EOF"`,
			},
		},
	}, func(t *testing.T, tt test) {
		server, b := lockertest.New(), &book{}
		if tt.before != nil {
			tt.before(server)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if tt.cancel > 0 {
			time.AfterFunc(tt.cancel, cancel)
		}
		tt.cfg.Logger = b.logger()
		tt.req.Name = "job"
		lock, err := locker.Chain(server, locker.Must(logging.New(tt.cfg)), waitsFor(3*time.Second)).Acquire(ctx, tt.req)
		switch {
		case err != nil:
		case tt.use != nil:
			tt.use(t, server, lock)
		default:
			check.OK(t, lock.Release(t.Context()))
		}
		elapse(time.Hour)       // no timer is left to log
		runtime.KeepAlive(lock) // a Lock collected before is reported as forgotten
		check.EqualSlices(t, "log", b.lines(), tt.want)
	})
}

// A waiter in the queue learns nothing about the holder. Its wait is still logged as contention.
func TestQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, b := lockertest.New(), &book{}
		wait := waitsFor(time.Hour)(server)
		l := locker.Must(logging.New(logging.Config{Logger: b.logger(), SlowWait: time.Hour}))(wait)
		server.Hold(locker.Request{Name: "job", TTL: time.Hour})
		go func() { _, _ = wait.Acquire(t.Context(), locker.Request{Name: "job", MaxWait: 10 * time.Second}) }()
		synctest.Wait()
		_, _ = l.Acquire(t.Context(), locker.Request{Name: "job", MaxWait: 5 * time.Second})
		check.EqualSlices(t, "log", b.lines(), []string{`level=DEBUG msg="lock contended" lock=job mode=exclusive queued=1`})
		synctest.Wait()
	})
}

// A loss and a release from two goroutines at the same time are logged once. No record has a token
// or an owner.
func TestLostOnce(t *testing.T) {
	t.Parallel()
	b, server := &book{}, lockertest.New()
	l := locker.Must(logging.New(logging.Config{Logger: b.logger()}))(server)
	losses := 0
	for range 100 {
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job", Owner: "secret-owner"}))
		token := lock.Handle().Info().Token
		var wg sync.WaitGroup
		wg.Go(func() { server.Expire("job") })
		wg.Go(func() { _ = lock.Release(t.Context()) })
		wg.Wait()
		var n int
		check.Eventually(t, "the loss is logged", func() bool { // one found by Release may be reported after it
			n = strings.Count(strings.Join(b.lines(), "\n"), "lock lost")
			return n > losses || !errors.Is(lock.Err(), locker.ErrLost)
		})
		if n > losses+1 {
			t.Fatalf("%d losses were logged of a lock with %v", n-losses, lock.Err())
		}
		losses = n
		if text := strings.Join(b.lines(), "\n"); strings.Contains(text, token) || strings.Contains(text, "secret-owner") {
			t.Fatalf("logged a secret: %s", text)
		}
	}
}

// The default Logger is slog.Default at the time of each record.
func TestDefaultLogger(t *testing.T) { //nolint:paralleltest // it sets what is global
	before := slog.Default()
	defer slog.SetDefault(before)
	server, b := lockertest.New(), &book{}
	l := locker.Must(logging.New(logging.Config{}))(server)
	slog.SetDefault(b.logger())
	server.Hold(locker.Request{Name: "job"})
	_, _ = l.Acquire(t.Context(), locker.Request{Name: "job"})
	if got := b.lines(); len(got) != 1 || !strings.Contains(got[0], "lock contended") {
		t.Errorf("logged %q", got)
	}
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	_, err := logging.New(logging.Config{SlowWait: -1})
	if invalid, ok := errors.AsType[*locker.InvalidError](err); !ok || invalid.What != "logging.Config.SlowWait" {
		t.Errorf("New: %v", err)
	}
	mw := locker.Must(logging.New(logging.Config{}))
	for _, none := range []*locker.Lock{nil, {}} {
		l := mw(locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { return none, nil }))
		if lock, err := l.Acquire(t.Context(), locker.Request{Name: "a"}); lock != none || err != nil {
			t.Errorf("Acquire: %v, %v", lock, err)
		}
	}
}

// A change of a quorum's node is logged once, however often the middleware is in the chain, and
// also after the acquisition.
func TestNodes(t *testing.T) {
	t.Parallel()
	b := &book{}
	mw := locker.Must(logging.New(logging.Config{Logger: b.logger()}))
	source := locktrace.Source{Strategy: "redlock", Client: "go-redis", Address: "10.0.0.1:6379"}
	var trace *locktrace.Trace
	var inside context.Context
	_, _ = mw(mw(locker.Func(func(ctx context.Context, _ locker.Request) (*locker.Lock, error) {
		inside, trace = ctx, locktrace.From(ctx) //nolint:fatcontext // for what comes after the acquisition
		trace.NodeFailing(ctx, locktrace.NodeInfo{Source: source, Node: 1, Name: "north", Nodes: 3, Failing: 1, Err: io.EOF})
		return nil, io.EOF
	}))).Acquire(t.Context(), locker.Request{Name: "job"})
	trace.NodeRecovered(inside, locktrace.NodeInfo{Source: source, Node: 1, Nodes: 3, For: time.Minute, Err: io.EOF})
	want := []string{
		`level=WARN msg="redlock node fails" node=1 name=north provider=go-redis address=10.0.0.1:6379 nodes=3 failing=1 error_type=eof error=EOF`,
		`level=INFO msg="redlock node recovered" node=1 provider=go-redis address=10.0.0.1:6379 nodes=3 failing=0 failed_for=1m0s`,
	}
	check.EqualSlices(t, "log", b.lines(), want)
}
