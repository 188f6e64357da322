//nolint:forbidigo // fake time
package watchdog_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/logging"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// use acquires a lock and returns what f does.
//
//go:noinline
func use(t *testing.T, ctx context.Context, l locker.Locker, f func(*locker.Lock) any) any {
	return f(acquire(t, ctx, l, locker.Request{}))
}

// The renewals of a forgotten lock end: its name is free one TTL later, and the log has one record
// of it. A lock in use is renewed for as long as it is.
func TestForgottenLockExpires(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		use     func(*locker.Lock) any
		expires bool
	}{
		"dropped": {func(*locker.Lock) any { return nil }, true},
		"ctx dropped": {func(l *locker.Lock) any {
			ctx, cancel := l.Context(context.Background())
			<-time.After(time.Second)
			cancel()
			return ctx.Err()
		}, true},
		"alive":  {func(l *locker.Lock) any { return l }, false},
		"Done":   {func(l *locker.Lock) any { return l.Done() }, false},
		"Handle": {func(l *locker.Lock) any { return l.Handle() }, false},
		"ctx": {func(l *locker.Lock) any {
			ctx, _ := l.Context(context.Background())
			return ctx
		}, false},
	} {
		for _, order := range [][2]int{{0, 1}, {1, 0}} {
			t.Run(fmt.Sprintf("%s, order %v", what, order), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					server, log := lockertest.New(), new(check.Buffer)
					chain := []locker.Middleware{locker.Must(watchdog.New(watchdog.Config{})), locker.Must(retry.New(retry.Config{}))}
					logs := locker.Must(logging.New(logging.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}))
					l := locker.Chain(server, chain[order[0]], chain[order[1]], logs)
					ctx, at := renewals(t)
					kept := use(t, ctx, l, tt.use)
					for range 10 {
						time.Sleep(ttl / 4)
						runtime.GC()
						runtime.GC()
					}
					synctest.Wait()
					if state, err := server.Inspect(t.Context(), name); err != nil || state.Held == tt.expires {
						t.Errorf("after 2.5 TTLs: %+v, %v", state, err)
					}
					if n := len(at.list()); tt.expires && n > 2 || !tt.expires && n < 7 {
						t.Errorf("%d renewals", n)
					}
					lines := log.String()
					if n := strings.Count(lines, "\n"); tt.expires && (n != 1 || !strings.Contains(lines, "error_type=forgotten")) || !tt.expires && n > 0 {
						t.Errorf("logged %s", lines)
					}
					runtime.KeepAlive(kept)
				})
			})
		}
	}
}

// A lock that was handed over is forgotten like any other, and not while it is held.
func TestForgottenAfterAHandOver(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var lost []error
		ctx := locktrace.With(t.Context(), &locktrace.Trace{Lost: func(_ context.Context, info locktrace.LostInfo) { lost = append(lost, info.Err) }})
		s := newServer(t)
		l := locker.Must(holdfast.Wrap(locker.Must(single.New(s, single.Config{})), holdfast.Config{HandOver: time.Hour}))
		first := acquire(t, ctx, l, locker.Request{})
		handed := make(chan *locker.Lock)
		go func() { handed <- acquire(t, ctx, l, locker.Request{}) }()
		synctest.Wait()
		match(t, first.Release(t.Context()))
		second := <-handed
		for range 8 {
			time.Sleep(ttl / 4)
			runtime.GC()
		}
		held(t, second)
		hold := second.Hold()
		for range 8 {
			time.Sleep(ttl / 4)
			runtime.GC()
			runtime.GC()
		}
		synctest.Wait()
		match(t, hold.Err(), locker.ErrLost, locker.ErrForgotten)
		check.Equal(t, "reported losses", len(lost), 1)
		match(t, first.Err(), locker.ErrReleased)
	})
}
