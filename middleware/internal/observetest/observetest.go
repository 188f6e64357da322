// Package observetest has the shared helpers of the observing middlewares' tests. Only tests import
// it.
package observetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.opentelemetry.io/otel/attribute"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// Elapse lets fake time pass.
func Elapse(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // in bubbles only

// WaitsFor is a retry with these intervals.
func WaitsFor(d time.Duration) locker.Middleware {
	waits := locker.Must(retry.New(retry.Config{Policy: func() backoff.BackOff { return backoff.NewConstantBackOff(d) }}))
	return func(l locker.Locker) locker.Locker { return waits(unannounced(l)) }
}

// unannounced hides the queue of l and the channel of its releases: only the pauses of a policy end
// a wait.
func unannounced(l locker.Locker) locker.Locker {
	return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		lock, err := l.Acquire(lease.WithWaiting(ctx, lease.Waiting{}), req)
		if held, refused := errors.AsType[*locker.ContentionError](err); refused {
			held.Channel, held.Queue, held.RetryAfter = driver.Channel{}, false, held.Left
		}
		return lock, err
	})
}

// Cycle acquires and releases.
func Cycle(tb testing.TB, ctx context.Context, l locker.Locker, req locker.Request) {
	tb.Helper()
	lock, err := l.Acquire(ctx, req)
	check.Must(tb, err)
	check.Must(tb, lock.Release(ctx))
}

// Text formats attributes, in order of their keys.
func Text(attrs []attribute.KeyValue) string {
	all := map[string]string{}
	for _, a := range attrs {
		all[strings.TrimPrefix(string(a.Key), "holdfast.")] = a.Value.String()
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, " %s=%s", k, all[k])
	}
	return strings.TrimPrefix(b.String(), " ")
}

// Without removes the attributes common to everything from lockertest.
func Without(line string) string {
	return strings.TrimSpace(strings.NewReplacer(" provider=memory", "", " strategy=lockertest", "").Replace(" " + line))
}

// Equal compares lines.
func Equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s are\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
