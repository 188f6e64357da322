package lease

import "context"

type ownerKey struct{}

// contextOwner is the owner that a ctx carries for one name, or for all if name is "". outer is
// what the ctx carried before.
type contextOwner struct {
	owner, name string
	outer       *contextOwner
}

// WithOwner returns a ctx under which acquires of name are made by owner. An empty name means all
// names; an empty owner removes what ctx carried for it.
func WithOwner(ctx context.Context, name, owner string) context.Context {
	outer, _ := ctx.Value(ownerKey{}).(*contextOwner)
	return context.WithValue(ctx, ownerKey{}, &contextOwner{owner: owner, name: name, outer: outer})
}

// OwnerFrom returns the owner that ctx carries for name: the one that was set last.
func OwnerFrom(ctx context.Context, name string) (string, bool) {
	o, _ := ctx.Value(ownerKey{}).(*contextOwner)
	for ; o != nil; o = o.outer {
		if o.name == "" || o.name == name {
			return o.owner, o.owner != ""
		}
	}
	return "", false
}
