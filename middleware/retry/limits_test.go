package retry_test

import (
	"bytes"
	"context"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// The next waiter gets its turn after any panic.
func TestPanicsLeaveTheQueue(t *testing.T) {
	boom := func(*server) { panic("boom") }
	type test struct {
		cfg   func(s *server) retry.Config
		inner func(s *server)
		trace *locktrace.Trace
	}
	bubbles(t, map[string]test{
		"inner Locker":               {inner: boom},
		"Goexit in the inner Locker": {inner: func(*server) { runtime.Goexit() }},
		"Policy": {cfg: func(s *server) retry.Config {
			return retry.Config{Policy: func() backoff.BackOff { boom(s); return nil }}
		}},
		"BackOff": {cfg: func(*server) retry.Config {
			return retry.Config{Policy: func() backoff.BackOff { return (*backoff.ExponentialBackOff)(nil) }}
		}},
		"Trace.Waiting": {trace: &locktrace.Trace{Waiting: func(context.Context, locktrace.WaitingInfo) { panic("boom") }}},
	}, func(t *testing.T, s *server, tt test) {
		s.noPubSub = true
		gate := make(chan struct{})
		s.answer = func(_ int, req locker.Request) error {
			if req.Note != "bad" {
				return nil
			}
			<-gate
			if tt.inner != nil {
				tt.inner(s)
			}
			return &locker.ContentionError{}
		}
		cfg := retry.Config{}
		if tt.cfg != nil {
			cfg = tt.cfg(s)
		}
		l := wrap(t, s, cfg)
		panicked := make(chan bool, 1)
		go func() {
			ended := false
			defer func() { panicked <- recover() != nil || !ended }()
			ctx := locktrace.With(t.Context(), tt.trace)
			_, _ = l.Acquire(ctx, locker.Request{Name: name, Note: "bad"})
			ended = true
		}()
		synctest.Wait()
		next := s.begin(t.Context(), l, locker.Request{})
		close(gate)
		if !<-panicked {
			t.Error("it did not reach the caller")
		}
		next.wantLock(t, 0)
	})
}

// A driver that is not comparable breaks the contract of driver.NewChannel. Its waiter leaves, and
// the queue goes on.
func TestChannelThatCannotBeCompared(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		type uncomparable struct {
			*server
			_ []int
		}
		s.answer = func(n int, _ locker.Request) error {
			if n > 1 {
				return nil
			}
			return &locker.ContentionError{Name: name, Hint: lease.Hint{Channel: driver.NewChannel(uncomparable{server: s}, "wake")}}
		}
		l := wrap(t, s, retry.Config{})
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = l.Acquire(t.Context(), locker.Request{Name: name})
		}()
		if <-panicked == nil {
			t.Error("it did not reach the caller")
		}
		s.begin(t.Context(), l, locker.Request{}).wantLock(t, 0)
	})
}

// A waiter waits in its caller's goroutine; its queue has a goroutine only while it subscribes. The
// test is not parallel: it would count the goroutines of others.
func TestNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.ask = late(time.Second)
		l := wrap(t, s, retry.Config{})
		s.hold()
		ctx, cancel := context.WithCancel(t.Context())
		for range 1000 {
			go func() { _, _ = l.Acquire(ctx, locker.Request{Name: name}) }()
		}
		synctest.Wait()
		if n := goroutines(); n != 1 || s.open() != 0 {
			t.Errorf("while it asks: %d goroutines, %d subscriptions; want 1, 0", n, s.open())
		}
		check.Advance(time.Minute)
		if n := goroutines(); n != 0 || s.open() != 1 {
			t.Errorf("while it waits: %d goroutines, %d subscriptions; want 0, 1", n, s.open())
		}
		cancel()
		synctest.Wait()
		if n := goroutines(); n != 0 || s.open() != 0 {
			t.Errorf("afterwards: %d goroutines, %d subscriptions", n, s.open())
		}
	})
}

// goroutines counts the goroutines started by the package.
func goroutines() int {
	buf := make([]byte, 16<<20)
	return bytes.Count(buf[:runtime.Stack(buf, true)], []byte("created by github.com/holdfast-go/holdfast/middleware/retry."))
}

// An uncontended name leaves nothing behind in memory.
func TestNoGrowth(t *testing.T) {
	l := wrap(t, free{}, retry.Config{})
	names := make([]string, 20000)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	size := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	before := size()
	for _, n := range names {
		locker.Must(l.Acquire(t.Context(), locker.Request{Name: n}))
	}
	if after := size(); after > before+5000 {
		t.Errorf("%d objects more after %d names", after-before, len(names))
	}
}
