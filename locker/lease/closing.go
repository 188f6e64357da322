package lease

import (
	"context"
	"runtime"
	"weak"

	"github.com/holdfast-go/holdfast/internal/acquisition"
)

// closing is a strategy that reports the Close of its drivers: docs/writing-a-strategy.md.
type closing interface {
	OnClose(f func()) (stop func() bool)
}

// WatchClose calls f with target once every acquire through w, a locker.Locker, fails because its
// drivers are being closed. If no strategy in w reports that, WatchClose does nothing. w does not
// keep target: the watch ends when target is garbage-collected. f must not refer to target.
func WatchClose[W, T any](w W, target *T, f func(*T)) {
	c, ok := Find[closing](w)
	if !ok {
		return
	}
	kept := weak.Make(target)
	stop := c.OnClose(func() {
		if target := kept.Value(); target != nil {
			f(target)
		}
	})
	runtime.AddCleanup(target, func(stop func() bool) { stop() }, stop)
}

// EndAcquire calls end, the result of driver.Driver.BeginAcquire. If the acquire succeeded and is one
// of several of a call, such as locker.AcquireAll, end is called when that call ends: it may release
// the lock yet.
func EndAcquire(ctx context.Context, end func(), acquired bool) {
	acquisition.EndAcquire(ctx, end, acquired)
}
