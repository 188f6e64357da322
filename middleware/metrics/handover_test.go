package metrics_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/metrics"
)

// handingOver is a Locker whose acquires wait until the lock is handed over to them.
func handingOver(inner locker.Locker) locker.Locker {
	return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		trace := locktrace.From(ctx)
		trace.Waiting(ctx, locktrace.WaitingInfo{Name: req.Name, Queued: 1})
		elapse(time.Second)
		trace.Woken(ctx, locktrace.WokenInfo{Name: req.Name, By: locktrace.ByHandOver})
		return inner.Acquire(ctx, req)
	})
}

// Hand-overs are counted apart.
func TestHandOver(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker, m *measured) {
		cycle(t, locker.Chain(handingOver(server), m.middleware(t, metrics.Config{})), locker.Request{Name: "job"})
		got := m.lines(t)[:1]
		equal(t, "acquisitions", got, []string{"acquisitions 1 contended=true handed_over=true lock.mode=exclusive outcome=acquired"})
	})
}
