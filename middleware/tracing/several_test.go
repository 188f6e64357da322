package tracing_test

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/tracing"
)

// Several locks have a span each below the caller's. One that waits has a span for the first try, and
// another one for the wait.
func TestSeveralLocks(t *testing.T) {
	overRedis(t, func(t *testing.T, _ *memredis.Server, start func(int, tracing.Config) *process) {
		p, other := start(0, tracing.Config{}), start(0, tracing.Config{})
		reqs := []locker.Request{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		ctx, caller := p.provider.Tracer("").Start(t.Context(), "caller")
		spans := func() (outcomes []string) {
			for _, span := range p.Ended() {
				if span.Name() != "acquire lock" {
					continue
				}
				check.Equal(t, "the parent", span.Parent().SpanID(), caller.SpanContext().SpanID())
				name, outcome := "", ""
				for _, attr := range span.Attributes() {
					switch attr.Key {
					case "holdfast.lock.name":
						name = attr.Value.AsString()
					case "holdfast.outcome":
						outcome = attr.Value.AsString()
					}
				}
				outcomes = append(outcomes, name+" "+outcome)
			}
			slices.Sort(outcomes)
			return outcomes
		}
		check.OK(t, locker.Must(locker.AcquireAll(ctx, p.locker, reqs)).Release(ctx))
		equal(t, "acquisitions of free locks", spans(), []string{"a acquired", "b acquired", "c acquired"})

		p.Reset()
		held := locker.Must(other.locker.Acquire(t.Context(), locker.Request{Name: "b"}))
		go func() {
			check.Advance(time.Millisecond)
			check.OK(t, held.Release(t.Context()))
		}()
		check.OK(t, locker.Must(locker.AcquireAll(ctx, p.locker, reqs)).Release(ctx))
		equal(t, "acquisitions where one is held", spans(), []string{"a acquired", "b acquired", "b held", "c acquired", "c acquired"})
		caller.End()
	})
}
