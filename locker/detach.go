package locker

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Detach returns a context with the values of ctx that does not end with it, but d from now or when stop is called. It is for
// strategies and middleware that leave work behind: unlike a context of package context with a deadline, it lets drivers take
// the path of a ctx that nobody cancels.
func Detach(ctx context.Context, d time.Duration) (detached context.Context, stop func()) {
	bound := driver.Bound(context.WithoutCancel(ctx), d)
	return bound, bound.Stop
}

// Passing tells whether err may pass by itself, so that trying again later is worth it: every transport error, and the server
// errors of a failover, a slot on the move, or a busy or full server. It is for strategies and middleware.
func Passing(err error) bool { return driver.Transient(err) }
