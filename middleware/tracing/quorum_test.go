package tracing_test

import (
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/tracing"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// attempts counts the events with that name by strategy and outcome.
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
// the holders it waited for, not to those at other nodes.
func TestQuorum(t *testing.T) {
	bubble(t, func(t *testing.T, _ *lockertest.Locker, r *recorded) {
		nodes := []*lockertest.Locker{lockertest.New(), lockertest.New(), lockertest.New()}
		nodes[1].Hold(locker.Request{Name: "job", Note: "traceparent=" + foreign})
		quorum := locker.Must(redlock.New([]locker.Locker{nodes[0], nodes[1], nodes[2]}, redlock.Config{}))
		l := r.middleware(tracing.Config{})(quorum)
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
		check.Equal(t, "won twice", err == nil, false)
		refused := r.only(t, "acquire lock")
		want(t, refused, "attempts=1 contended=true lock.mode=exclusive lock.name=job outcome=held strategy=redlock waited=0", "Unset")
		equal(t, "links of one that was refused", linked(refused), []string{toward(won.SpanContext())})
		check.OK(t, lock.Release(t.Context()))
		check.Contains(t, "attributes of the hold", text(r.only(t, "hold lock").Attributes()), "outcome=released")
	})
}
