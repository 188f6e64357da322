package driver

import "context"

// Cancellable reports whether ctx can end before its deadline, or at all if it has none. If it
// cannot, an adapter may send the command in the caller's goroutine, under the deadline. A context
// with a method Cancellable() bool answers by it: its Done may start a timer.
func Cancellable(ctx context.Context) bool {
	if c, ok := ctx.(interface{ Cancellable() bool }); ok {
		return c.Cancellable()
	}
	return ctx.Done() != nil
}

// Urgent reports whether ctx is that of a renewal, a release or a conversion: it has a method
// Urgent() bool, which returns true. Such a call does not queue behind acquires for a connection.
func Urgent(ctx context.Context) bool {
	u, ok := ctx.(interface{ Urgent() bool })
	return ok && u.Urgent()
}
