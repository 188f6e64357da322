package adapter_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

func TestBaseShutdown(t *testing.T) {
	t.Parallel()
	var b adapter.Base
	check.Error(t, "CheckOpen of a fresh driver", b.CheckOpen())
	check.Error(t, "Shutdown of an idle driver", b.Shutdown(nil))
	check.Error(t, "CheckOpen", b.CheckOpen(), driver.ErrClosed)
	check.Error(t, "second Shutdown", b.Shutdown(nil), driver.ErrClosed)
	if b.Background(func(context.Context) { t.Error("ran on a closed driver") }) {
		t.Error("Background on a closed driver says that it runs")
	}
	check.Error(t, "UntilClose, asked for the first time", b.UntilClose().Err(), context.Canceled)
}

// Shutdown cancels background work and waits for it; meanwhile the work can still send. Then calls
// fail, and the hub is closed last.
func TestBaseShutdownOrder(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var b adapter.Base
		srv := newServer(t)
		hub := adapter.NewHub(srv.open, nil)
		sub := subscribe(t, hub, "a")
		ended := make(chan time.Time, 2)
		for _, extra := range []time.Duration{time.Second, 2 * time.Second} {
			if !b.Background(func(ctx context.Context) {
				<-ctx.Done()
				check.Error(t, "background work can send no more", b.CheckOpen())
				check.Advance(extra)
				if srv.newest().isClosed() {
					t.Error("the hub was closed before background work ended")
				}
				ended <- time.Now()
			}) {
				t.Fatal("Background does not run")
			}
		}
		check.Advance(time.Minute)
		start := time.Now()
		check.Error(t, "Shutdown", b.Shutdown(hub))
		if got := time.Since(start); got != 2*time.Second || len(ended) != 2 {
			t.Errorf("Shutdown took %v with %d ended, want 2s and both", got, len(ended))
		}
		check.Error(t, "CheckOpen", b.CheckOpen(), driver.ErrClosed)
		if !srv.newest().isClosed() {
			t.Error("the hub is open")
		}
		_, err := hub.Subscribe(t.Context(), "b")
		check.Error(t, "Subscribe", err, driver.ErrClosed)
		check.OK(t, sub.Close())
		check.Error(t, "second Close of a subscription", sub.Close(), driver.ErrClosed)
	})
}

func TestBaseShutdownIsBounded(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var b adapter.Base
		free := make(chan struct{})
		b.Background(func(context.Context) { <-free })
		closeErr := errors.New("close failed")
		srv := newServer(t)
		srv.closeErr = closeErr
		hub := adapter.NewHub(srv.open, nil)
		subscribe(t, hub, "a")
		start := time.Now()
		second := make(chan error, 1)
		go func() {
			check.Advance(time.Second)
			second <- b.Shutdown(hub)
		}()
		err := b.Shutdown(hub)
		check.Took(t, "Shutdown", start, 3*time.Second)
		check.Error(t, "Shutdown", err, driver.ErrCleanUpUnfinished)
		check.Error(t, "Shutdown", err, closeErr)
		check.Error(t, "Shutdown during Shutdown", <-second, driver.ErrClosed)
		check.Error(t, "CheckOpen", b.CheckOpen(), driver.ErrClosed)
		close(free) // a later end must not panic
	})
}

// Background work that ends by Goexit has ended.
func TestBaseBackgroundEndsByGoexit(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var b adapter.Base
		b.Background(func(context.Context) { runtime.Goexit() })
		synctest.Wait()
		start := time.Now()
		if err := b.Shutdown(nil); err != nil || time.Since(start) != 0 {
			t.Errorf("Shutdown: %v after %v", err, time.Since(start))
		}
	})
}

// Shutdown waits for acquires in flight, which notice it at once, and begins no other.
func TestBaseShutdownWaitsForAcquires(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var b adapter.Base
		open := b.UntilClose()
		end, err := b.BeginAcquire()
		check.OK(t, err)
		start := time.Now()
		go func() {
			<-open.Done()
			check.Error(t, "BeginAcquire during Shutdown", check.ErrOf(b.BeginAcquire()), driver.ErrClosed)
			check.OK(t, b.CheckOpen())
			check.Advance(time.Second)
			end()
		}()
		check.OK(t, open.Err())
		check.OK(t, b.Shutdown(nil))
		check.Took(t, "Shutdown", start, time.Second)
		check.Error(t, "UntilClose after Shutdown", b.UntilClose().Err(), context.Canceled)
	})
}
