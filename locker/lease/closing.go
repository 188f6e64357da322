package lease

import (
	"context"
	"runtime"
	"weak"

	"github.com/holdfast-go/holdfast/internal/acquisition"
)

// Closing is implemented by a Locker that reports the Close of its drivers.
type Closing interface {
	// OnClose calls f in a goroutine of its own once every acquire fails because of a Close, or at
	// once if it does already. For a quorum this is when too few drivers are left. stop drops f.
	OnClose(f func()) (stop func() bool)
}

// WatchClose calls f with target once c is being closed. c does not keep target: the watch ends when
// target is garbage-collected. f must not refer to target.
func WatchClose[T any](c Closing, target *T, f func(*T)) {
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
