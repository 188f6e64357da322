//nolint:forbidigo // fake time
package watchdog_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// fullPipe is a log sink that blocks until it is drained.
type fullPipe struct {
	slog.Handler
	drained chan struct{}
}

func (fullPipe) Enabled(context.Context, slog.Level) bool { return true }

func (p fullPipe) Handle(context.Context, slog.Record) error {
	<-p.drained
	return nil
}

// Blocked callbacks, in a log sink or after the loss of a lock, lose no lock on a healthy server.
func TestBlockedCallbacks(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]bool{"over a server": true, "without a server": false}, func(t *testing.T, served bool) {
		s, strategy := newServer(t), locker.Locker(granting{})
		if served {
			strategy = locker.Must(single.New(s, single.Config{}))
		}
		pipe := fullPipe{slog.DiscardHandler, make(chan struct{})}
		drain := sync.OnceFunc(func() { close(pipe.drained) })
		defer drain()
		log := slog.New(pipe)
		ctx := locktrace.With(t.Context(), &locktrace.Trace{
			Renewed: func(ctx context.Context, info locktrace.RenewedInfo) {
				log.InfoContext(ctx, "renewed", "lock", info.Name)
			},
			Lost: func(ctx context.Context, info locktrace.LostInfo) { log.InfoContext(ctx, "lost", "lock", info.Name) },
		})
		l := locker.Must(watchdog.New(watchdog.Config{}))(strategy)
		locks := acquireMany(t, ctx, l, 99, "", ttl)
		gone := locks[0]
		gone.AfterDone(func(error) { <-pipe.drained })
		s.m.Del(gone.Name())
		for range 3 {
			time.Sleep(ttl)
			for _, lock := range locks[1:] {
				if late := time.Since(lock.Deadline()); late > 0 {
					t.Fatalf("a lock has passed its Deadline by %v", late)
				}
			}
		}
		if served {
			match(t, gone.Err(), locker.ErrLost)
		}
		drain()
		for _, lock := range locks[1:] {
			match(t, lock.Release(t.Context()))
		}
		_ = gone.Release(t.Context())
		synctest.Wait()
	})
}
