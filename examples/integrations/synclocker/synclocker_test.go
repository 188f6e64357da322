package synclocker_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/integrations/internal/adaptertest"
	"github.com/holdfast-go/holdfast/examples/integrations/synclocker"
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

// Goroutines of one process exclude each other too.
func TestGoroutines(t *testing.T) {
	t.Parallel()
	s := adaptertest.Start(t)
	var m sync.Locker = newMutex(t.Context(), t, s.Process(holdfast.Config{}), locker.Request{}, func(err error) { t.Error(err) })
	n := 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				m.Lock()
				n++
				m.Unlock()
			}
		})
	}
	wg.Wait()
	if n != 40 {
		t.Errorf("n is %d, want 40", n)
	}
	s.Empty()
}

// A Lock that fails does not return: it panics, or onError ends the goroutine.
func TestLockFails(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	newMutex(t.Context(), t, l, locker.Request{}, func(err error) { t.Error(err) }).Lock()
	for _, c := range []struct {
		name    string
		onError func()
		panics  bool
	}{
		{"onError returns", func() {}, true},
		{"onError ends the goroutine", runtime.Goexit, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
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
			if p := <-panicked; (p != nil) != c.panics {
				t.Errorf("Lock panicked with %v", p)
			}
			if !errors.Is(reported, locker.ErrNotAcquired) {
				t.Errorf("onError was called with %v, want %v", reported, locker.ErrNotAcquired)
			}
		})
	}
}

func TestUnlockFails(t *testing.T) {
	t.Parallel()
	var reported error
	m := newMutex(t.Context(), t, lockertest.New(), locker.Request{}, func(err error) { reported = err })
	m.Unlock()
	if !errors.Is(reported, locker.ErrNotHeld) {
		t.Errorf("Unlock without Lock: %v, want %v", reported, locker.ErrNotHeld)
	}
}

func TestNewWithoutOnError(t *testing.T) {
	t.Parallel()
	if _, err := synclocker.New(t.Context(), lockertest.New(), name, locker.Request{}, nil); err == nil {
		t.Error("New accepted a Mutex that reports nothing")
	}
}
