package synclocker_test

import (
	"context"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/examples/integrations/internal/adaptertest"
	"github.com/holdfast-go/holdfast/examples/integrations/synclocker"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const name = "report"

func newMutex(
	ctx context.Context, t *testing.T, l locker.Locker, req locker.Request, onError func(error),
) *synclocker.Mutex {
	t.Helper()
	m := locker.Must(synclocker.New(ctx, l, name, req, onError))
	return m
}

func TestMutex(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, name, func(ctx context.Context, l locker.Locker, req locker.Request) adaptertest.Mutex {
		var failed error
		m := newMutex(ctx, t, l, req, func(err error) { failed = err })
		return adaptertest.Mutex{
			Lock: func() (err error) {
				defer func() { err, _ = recover().(error) }()
				m.Lock()
				return nil
			},
			Unlock: func() error {
				m.Unlock()
				return failed
			},
		}
	})
}

// A failed Lock does not return: it panics, or onError ends the goroutine.
func TestLockFails(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	newMutex(t.Context(), t, l, locker.Request{}, func(err error) { t.Error(err) }).Lock()
	type test struct {
		onError func()
		panics  bool
	}
	check.Each(t, map[string]test{
		"onError returns":            {func() {}, true},
		"onError ends the goroutine": {runtime.Goexit, false},
	}, func(t *testing.T, c test) {
		var reported error
		m := newMutex(t.Context(), t, l, locker.Request{NoWait: true}, func(err error) {
			reported = err
			c.onError()
		})
		panicked := make(chan any)
		go func() {
			defer func() { panicked <- recover() }()
			m.Lock()
			t.Error("Lock returned without the lock")
		}()
		check.Equal(t, "Lock panics", <-panicked != nil, c.panics)
		check.Error(t, "onError was called with", reported, locker.ErrNotAcquired)
	})
}

func TestNewWithoutOnError(t *testing.T) {
	t.Parallel()
	if _, err := synclocker.New(t.Context(), lockertest.New(), name, locker.Request{}, nil); err == nil {
		t.Error("New accepted a Mutex that reports nothing")
	}
}
