package adapter_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

var _ driver.Backgrounder = (*adapter.Base)(nil)

func TestBaseShutdown(t *testing.T) {
	t.Parallel()
	var b adapter.Base
	if err := b.CheckOpen(); err != nil {
		t.Errorf("CheckOpen of a fresh driver: %v", err)
	}
	if err := b.Shutdown(nil); err != nil {
		t.Errorf("Shutdown of an idle driver: %v", err)
	}
	wantError(t, "CheckOpen", b.CheckOpen(), driver.ErrClosed)
	wantError(t, "second Shutdown", b.Shutdown(nil), driver.ErrClosed)
	if b.Background(func(context.Context) { t.Error("ran on a closed driver") }) {
		t.Error("Background on a closed driver says that it runs")
	}
}

// Shutdown cancels background work, which can still send, and waits for it. Then calls fail, and
// the hub is closed last.
func TestBaseShutdownOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b adapter.Base
		srv := newServer(t)
		hub := adapter.NewHub(srv.open)
		sub := subscribe(t, hub, "a")
		ended := make(chan time.Time, 2)
		for _, extra := range []time.Duration{time.Second, 2 * time.Second} {
			if !b.Background(func(ctx context.Context) {
				<-ctx.Done()
				if err := b.CheckOpen(); err != nil {
					t.Errorf("background work can send no more: %v", err)
				}
				advance(extra)
				if srv.newest().isClosed() {
					t.Error("the hub was closed before background work ended")
				}
				ended <- time.Now()
			}) {
				t.Fatal("Background does not run")
			}
		}
		advance(time.Minute)
		start := time.Now()
		if err := b.Shutdown(hub); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if got := time.Since(start); got != 2*time.Second || len(ended) != 2 {
			t.Errorf("Shutdown took %v with %d ended, want 2s and both", got, len(ended))
		}
		wantError(t, "CheckOpen", b.CheckOpen(), driver.ErrClosed)
		if !srv.newest().isClosed() {
			t.Error("the hub is open")
		}
		_, err := hub.Subscribe(t.Context(), "b")
		wantError(t, "Subscribe", err, driver.ErrClosed)
		_ = sub.Close()
	})
}

func TestBaseShutdownIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b adapter.Base
		free := make(chan struct{})
		b.Background(func(context.Context) { <-free })
		closeErr := errors.New("close failed")
		srv := newServer(t)
		srv.closeErr = closeErr
		hub := adapter.NewHub(srv.open)
		subscribe(t, hub, "a")
		start := time.Now()
		second := make(chan error, 1)
		go func() {
			advance(time.Second)
			second <- b.Shutdown(hub)
		}()
		err := b.Shutdown(hub)
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("Shutdown took %v, want 3s", got)
		}
		wantError(t, "Shutdown", err, driver.ErrCleanUpUnfinished)
		wantError(t, "Shutdown", err, closeErr)
		wantError(t, "Shutdown during Shutdown", <-second, driver.ErrClosed)
		wantError(t, "CheckOpen", b.CheckOpen(), driver.ErrClosed)
		close(free) // what ends later must not panic
	})
}

// Background work that ends by Goexit has ended.
func TestBaseBackgroundEndsByGoexit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b adapter.Base
		b.Background(func(context.Context) { runtime.Goexit() })
		synctest.Wait()
		start := time.Now()
		if err := b.Shutdown(nil); err != nil || time.Since(start) != 0 {
			t.Errorf("Shutdown: %v after %v", err, time.Since(start))
		}
	})
}
