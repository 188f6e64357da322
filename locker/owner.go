package locker

import (
	"context"

	"github.com/holdfast-go/holdfast/locker/lease"
)

// WithOwner returns a ctx under which every acquire of every name is made by owner, unless its
// Request says otherwise. It is for reentrant locks: acquires that carry the same owner re-enter,
// from any goroutine or process. An empty owner removes what ctx carried.
func WithOwner(ctx context.Context, owner string) context.Context {
	return lease.WithOwner(ctx, "", owner)
}
