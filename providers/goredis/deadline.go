package goredis

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// call runs f, which sends something under ctx, and returns soon after ctx ends. go-redis waits for a connection until ctx
// ends, but for a reply until ctx's deadline at best: a call that can be cancelled needs a goroutine.
func call[T any](ctx context.Context, a *adapter, f func() (T, error)) (T, error) {
	var zero T
	if err := a.Guard(); err != nil {
		return zero, err
	}
	if err := ctx.Err(); err != nil {
		return zero, driver.NotSent(err)
	}
	if _, bounded := ctx.Deadline(); !driver.Cancellable(ctx) && (a.obeysDeadline || !bounded) {
		return f()
	}
	return driver.Await(ctx, f)
}

// obeysDeadline tells whether client ends a call by its context's deadline. With negative timeouts it sets no deadlines, and
// a ReadOnly cluster client asks a server for the list of commands, whatever the context says.
func obeysDeadline(client redis.UniversalClient) bool {
	switch c := client.(type) {
	case *redis.Client:
		o := c.Options()
		return o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0
	case *redis.ClusterClient:
		o := c.Options()
		return o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0 && !o.ReadOnly
	}
	return false
}
