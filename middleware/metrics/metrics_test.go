package metrics_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/internal/observetest"
	"github.com/holdfast-go/holdfast/middleware/metrics"
)

// Each outcome of an acquisition is counted.
func TestAcquisitions(t *testing.T) {
	t.Parallel()
	hold := func(l *lockertest.Locker) { l.Hold(locker.Request{Name: "job", TTL: time.Hour}) }
	fail := func(err error) func(*lockertest.Locker) { return func(l *lockertest.Locker) { l.FailAcquire(err) } }
	tests := []struct {
		name   string
		before func(*lockertest.Locker)
		req    locker.Request
		want   []string
	}{
		{
			name: "refused", before: hold, req: locker.Request{NoWait: true, Mode: locker.Shared}, want: []string{
				"acquisitions 1 contended=true lock.mode=shared outcome=held", "wait.duration 1 of 0 contended=true lock.mode=shared outcome=held",
			},
		},
		{
			name: "MaxWait", before: hold, req: locker.Request{MaxWait: 10 * time.Second}, want: []string{
				"acquisitions 1 contended=true lock.mode=exclusive outcome=timeout", "wait.duration 1 of 10 contended=true lock.mode=exclusive outcome=timeout",
				"waiting 0 lock.mode=exclusive",
			},
		},
		{
			name: "acquired after a wait", before: func(l *lockertest.Locker) { l.Hold(locker.Request{Name: "job", TTL: 4 * time.Second}) }, want: []string{
				"acquisitions 1 contended=true lock.mode=exclusive outcome=acquired", "held 1 lock.mode=exclusive", "losses 0 lock.mode=exclusive",
				"renewal.failures 0 lock.mode=exclusive",
				"wait.duration 1 of 4.001 contended=true lock.mode=exclusive outcome=acquired", "waiting 0 lock.mode=exclusive",
			},
		},
		{
			name: "server error", before: fail(&driver.ServerError{Text: "WRONGTYPE x"}), want: []string{
				"acquisitions 1 contended=false error.type=WRONGTYPE lock.mode=exclusive outcome=error",
				"wait.duration 1 of 0 contended=false error.type=WRONGTYPE lock.mode=exclusive outcome=error",
			},
		},
		{
			name: "acquired after an outage", before: fail(io.EOF), want: []string{
				"acquisitions 1 contended=false lock.mode=exclusive outcome=acquired", "held 1 lock.mode=exclusive", "losses 0 lock.mode=exclusive",
				"renewal.failures 0 lock.mode=exclusive",
				"wait.duration 1 of 3 contended=false lock.mode=exclusive outcome=acquired", "waiting 0 lock.mode=exclusive",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *lockertest.Locker, m *measured) {
				if tt.before != nil {
					tt.before(server)
				}
				tt.req.Name = "job"
				_, _ = locker.Chain(server, m.middleware(t, metrics.Config{}), waitsFor(3*time.Second)).Acquire(t.Context(), tt.req)
				equal(t, "measurements", m.lines(t), tt.want)
			})
		})
	}
}

// A waiter, in the queue or for the holder, counts until its acquisition ends.
func TestWaiters(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker, m *measured) {
		l := locker.Chain(server, m.middleware(t, metrics.Config{}), waitsFor(time.Second))
		waiting := func(want, when string) { t.Helper(); check.Equal(t, when+": waiters", m.waiters(t), want) }
		held := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job", TTL: time.Hour}))
		waiting("none", "nobody has waited")
		for range 3 {
			go func() {
				_ = locker.Do(t.Context(), l, locker.Request{Name: "job"}, func(context.Context, *locker.Lock) error { elapse(time.Second); return nil })
			}()
		}
		go func() { _, _ = l.Acquire(t.Context(), locker.Request{Name: "job", MaxWait: 10 * time.Second}) }()
		waiting("4", "all wait")
		elapse(11 * time.Second)
		waiting("3", "one gave up")
		check.OK(t, held.Release(t.Context()))
		waiting("2", "one got it")
		elapse(time.Minute)
		waiting("0", "at the end")
	})
}

// waiters returns the number of waiters, or "none".
func (m *measured) waiters(t *testing.T) string {
	t.Helper()
	synctest.Wait()
	for _, line := range m.lines(t) {
		if strings.HasPrefix(line, "waiting ") {
			return strings.Fields(line)[1]
		}
	}
	return "none"
}

// While the server is frozen, nearly all of the time passes in attempts. The waiter still counts.
func TestWaiterAtFrozenServer(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker, m *measured) {
		l := locker.Chain(server, m.middleware(t, metrics.Config{}), waitsFor(time.Second))
		server.SetOutage(lockertest.Silent)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = l.Acquire(ctx, locker.Request{Name: "job"}) }()
		elapse(time.Minute)
		for minute := range 30 {
			check.Equal(t, fmt.Sprintf("waiters after %d minutes", minute+1), m.waiters(t), "1")
			elapse(time.Minute)
		}
		cancel()
		check.Equal(t, "waiters at the end", m.waiters(t), "0")
	})
}

// Names appear in no attribute unless the user maps them to groups.
func TestCardinality(t *testing.T) {
	t.Parallel()
	m := measure()
	mw := m.middleware(t, metrics.Config{
		Attributes: []attribute.KeyValue{attribute.String("service", "billing")},
		Group: func(name string) string {
			group, _, _ := strings.Cut(name, ":")
			return group
		},
	})
	for i := range 100 {
		cycle(t, mw(lockertest.New()), locker.Request{Name: fmt.Sprintf("invoice:%d", i), Owner: fmt.Sprint(i), Note: fmt.Sprint(i)})
	}
	cycle(t, mw(lockertest.New()), locker.Request{Name: ":no group"})
	cycle(t, mw(lockertest.New()), locker.Request{Name: "any\xffbytes"}) // no exporter could send it
	equal(t, "points of a counter", slices.DeleteFunc(m.lines(t), func(line string) bool { return !strings.HasPrefix(line, "acquisitions") }), []string{
		"acquisitions 1 contended=false lock.group=any\uFFFDbytes lock.mode=exclusive outcome=acquired service=billing",
		"acquisitions 1 contended=false lock.mode=exclusive outcome=acquired service=billing",
		"acquisitions 100 contended=false lock.group=invoice lock.mode=exclusive outcome=acquired service=billing",
	})
}

func cycle(tb testing.TB, l locker.Locker, req locker.Request) {
	tb.Helper()
	observetest.Cycle(tb, tb.Context(), l, req)
}

// A panic in the inner Locker is counted, and leaves no waiter behind. So is a nil or zero Lock.
func TestMisuse(t *testing.T) {
	t.Parallel()
	m := measure()
	mw := m.middleware(t, metrics.Config{})
	func() {
		defer func() { _ = recover() }()
		_, _ = mw(locker.Func(func(ctx context.Context, _ locker.Request) (*locker.Lock, error) {
			locktrace.From(ctx).Waiting(ctx, locktrace.WaitingInfo{Err: io.EOF})
			panic("x")
		})).Acquire(t.Context(), locker.Request{Name: "a"})
	}()
	for _, none := range []*locker.Lock{nil, {}} {
		_, _ = mw(locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { return none, nil })).Acquire(t.Context(), locker.Request{Name: "a"})
	}
	got := slices.DeleteFunc(m.lines(t), func(line string) bool { return strings.HasPrefix(line, "wait.") })
	equal(t, "measurements", got, []string{
		"acquisitions 1 contended=false error.type=panic lock.mode=exclusive outcome=error", "acquisitions 2 contended=false lock.mode=exclusive outcome=acquired",
		"waiting 0 lock.mode=exclusive",
	})
}

// The gauge of a quorum's node is 1 while it fails and 0 after it recovered, also if the change is
// noticed after the acquisition.
func TestNodes(t *testing.T) {
	t.Parallel()
	m := measure()
	mw := m.middleware(t, metrics.Config{Attributes: []attribute.KeyValue{attribute.String("service", "billing")}})
	source := locktrace.Source{Strategy: "redlock", Address: "10.0.0.1:6379"}
	var trace *locktrace.Trace
	var inside context.Context
	quorum := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		inside, trace = ctx, locktrace.From(ctx) //nolint:fatcontext // for what comes after the acquisition
		trace.NodeFailing(ctx, locktrace.NodeInfo{Source: source, Node: 1, Name: "north", Err: io.EOF})
		return lockertest.New().Acquire(ctx, req)
	})
	cycle(t, mw(mw(quorum)), locker.Request{Name: "job"})
	trace.NodeFailing(inside, locktrace.NodeInfo{Source: source, Node: 2, Err: io.EOF})
	trace.NodeFailing(inside, locktrace.NodeInfo{Source: locktrace.Source{Strategy: "redlock"}, Node: 3, Err: io.EOF})
	trace.NodeRecovered(inside, locktrace.NodeInfo{Source: source, Node: 1, Name: "north"})
	equal(t, "nodes", slices.DeleteFunc(m.lines(t), func(line string) bool { return !strings.Contains(line, "nodes.failing") }), []string{
		"holdfast.redlock.nodes.failing 0 node=north service=billing strategy=redlock",
		"holdfast.redlock.nodes.failing 1 node=10.0.0.1:6379 service=billing strategy=redlock",
		"holdfast.redlock.nodes.failing 1 node=3 service=billing strategy=redlock",
	})
}
