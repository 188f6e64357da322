package lease

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/callchain"
)

// OwnerFrom returns the owner for acquires of name in ctx: that of locker.WithOwner, or of the lock
// whose Lock.Context made ctx, whichever was set last.
func OwnerFrom(ctx context.Context, name string) (owner string, ok bool) {
	owner = callchain.Owner(ctx, name)
	return owner, owner != ""
}
