package locker

import "context"

type ownerKey struct{}

// ownership is what a ctx says of owners: one for a name or for all, and what was there before.
type ownership struct {
	owner, name string
	all         bool
	outer       *ownership
}

// WithOwner returns a ctx under which every acquire of every name is made by owner, unless its Request says otherwise. It
// is for reentrant locks: acquires that carry the same owner re-enter, from any goroutine or process. An empty owner takes
// away what ctx carried.
func WithOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, &ownership{owner: owner, all: true})
}

// withNameOwner is WithOwner for one name.
func withNameOwner(ctx context.Context, name, owner string) context.Context {
	outer, _ := ctx.Value(ownerKey{}).(*ownership)
	return context.WithValue(ctx, ownerKey{}, &ownership{owner: owner, name: name, outer: outer})
}

// OwnerFrom returns the owner that ctx carries for name. What was said last wins.
func OwnerFrom(ctx context.Context, name string) (string, bool) {
	o, _ := ctx.Value(ownerKey{}).(*ownership)
	for ; o != nil; o = o.outer {
		if o.all || o.name == name {
			return o.owner, o.owner != ""
		}
	}
	return "", false
}
