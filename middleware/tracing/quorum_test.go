package tracing_test

import (
	"context"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/tracing"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// quorum is a redlock over three nodes, each behind around.
func quorum(around locker.Middleware) (nodes []*lockertest.Locker, l locker.Locker) {
	var lockers []locker.Locker
	for range 3 {
		n := lockertest.New()
		nodes, lockers = append(nodes, n), append(lockers, around(n))
	}
	return nodes, locker.Must(redlock.New(lockers, redlock.Config{}))
}

func bare(l locker.Locker) locker.Locker { return l }

// attempts counts the events of that name by their strategy and outcome.
func attempts(s sdktrace.ReadOnlySpan, strategy, outcome string) (n int) {
	for _, e := range s.Events() {
		attrs := text(e.Attributes)
		if e.Name == "attempt" && strings.Contains(attrs, "strategy="+strategy) && strings.Contains(attrs, "outcome="+outcome) {
			n++
		}
	}
	return n
}

// An acquire of a quorum is one attempt, and the answers of its nodes are events. The span links to
// the holders that it waited for, not to those at nodes that it did not need.
func TestQuorum(t *testing.T) {
	bubble(t, func(t *testing.T, _ *lockertest.Locker, r *recorded) {
		nodes, l := quorum(bare)
		nodes[1].Hold(locker.Request{Name: "job", Note: "traceparent=" + foreign})
		l = r.middleware(tracing.Config{})(l)
		lock, err := l.Acquire(t.Context(), locker.Request{Name: "job"})
		check.Must(t, err)
		won := r.only(t, "acquire lock")
		want(t, won, "attempts=1 contended=false lock.mode=exclusive lock.name=job lock.ttl=30 outcome=acquired strategy=redlock waited=0", "Unset")
		equal(t, "links of one that was won", linked(won), []string{})
		if attempts(won, "redlock", "acquired") != 1 || attempts(won, "lockertest", "acquired") < 2 {
			t.Errorf("events %q", events(won))
		}
		r.Reset()
		nodes[1].Expire("job")
		_, err = l.Acquire(t.Context(), locker.Request{Name: "job", NoWait: true})
		if err == nil {
			t.Error("won twice")
		}
		refused := r.only(t, "acquire lock")
		want(t, refused, "attempts=1 contended=true lock.mode=exclusive lock.name=job outcome=held strategy=redlock waited=0", "Unset")
		equal(t, "links of one that was refused", linked(refused), []string{toward(won.SpanContext())})
		check.OK(t, lock.Release(t.Context()))
		if hold := r.only(t, "hold lock"); !strings.Contains(text(hold.Attributes()), "outcome=released") {
			t.Errorf("the hold has %s", text(hold.Attributes()))
		}
	})
}

// A middleware around the quorum and its nodes makes a span for each node, below that of the
// quorum. All of them end.
func TestAroundNodes(t *testing.T) {
	bubble(t, func(t *testing.T, _ *lockertest.Locker, r *recorded) {
		mw := r.middleware(tracing.Config{})
		_, l := quorum(mw)
		err := locker.Do(t.Context(), mw(l), locker.Request{Name: "job"}, func(context.Context, *locker.Lock) error { return nil })
		check.Must(t, err)
		elapse(locker.DefaultTTL) // what was late is over
		if started, ended := len(r.Started()), len(r.Ended()); started != 8 || ended != started {
			t.Errorf("%d spans began, %d ended; want 8", started, ended)
		}
		for _, s := range r.Ended() {
			attrs := text(s.Attributes())
			if s.Name() == "acquire lock" && !strings.Contains(attrs, "attempts=1 contended=false ") {
				t.Errorf("%s has %s", s.Name(), attrs)
			}
			if strings.Contains(attrs, "strategy=lockertest") && s.Parent().TraceID() != r.Ended()[0].SpanContext().TraceID() {
				t.Errorf("%s of a node is in another trace", s.Name())
			}
		}
	})
}
