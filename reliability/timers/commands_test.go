package timers

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var script = driver.NewScript(`return redis.call("INCR", KEYS[1])`)

// each calls f with each kind of context known to drivers. It lasts for d.
func each(t *testing.T, d time.Duration, f func(context.Context)) {
	t.Helper()
	timed, cancel := context.WithTimeout(t.Context(), d)
	f(timed)
	cancel()
	for _, parent := range []context.Context{context.Background(), t.Context()} {
		bound := bounded.New(parent, d)
		f(bound)
		bound.Stop()
	}
}

// send sends one command of each kind, and returns the errors.
func send(ctx context.Context, drv driver.Driver) (errs []error) {
	_, err := drv.SetNX(ctx, "set", "value", time.Hour)
	errs = append(errs, err)
	_, err = drv.Eval(ctx, script, []string{"count"}, nil)
	errs = append(errs, err)
	together := make([]error, 12)
	var wg sync.WaitGroup
	for i := range together {
		wg.Go(func() { _, together[i] = drv.Eval(ctx, script, []string{"count"}, nil) })
	}
	wg.Wait()
	errs = append(errs, together...)
	_, _, err = drv.EvalAcked(ctx, script, []string{"count"}, nil, 1, 10*time.Millisecond) // there is no replica
	errs = append(errs, err)
	sub, err := drv.Subscribe(ctx, "channel")
	if err == nil {
		err = sub.Close()
	}
	return append(errs, err)
}

// commands sends commands without a failure.
func commands(t *testing.T, drv driver.Driver) {
	t.Helper()
	each(t, patience, func(ctx context.Context) {
		for i, err := range send(ctx, drv) {
			if err != nil {
				t.Errorf("command %d: %v", i, err)
			}
		}
	})
}

// commandsFail sends the same in vain.
func commandsFail(t *testing.T, drv driver.Driver) {
	t.Helper()
	each(t, 50*time.Millisecond, func(ctx context.Context) {
		for i, err := range send(ctx, drv) {
			if err == nil {
				t.Errorf("command %d: no error", i)
			}
		}
	})
}
