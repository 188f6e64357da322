package lease

import (
	"context"
	"iter"
)

type ownerKey struct{}

// contextOwner is the owner that a ctx carries for one name, or for all if name is "". lock is the
// Lock whose Context made it, or nil; outer is what the ctx carried before.
type contextOwner struct {
	owner, name string
	lock        holder
	outer       *contextOwner
}

// holder is a Lock.
type holder interface{ Hold() Hold }

// WithOwner returns a ctx under which acquires of name are made by owner. An empty name means all
// names; an empty owner removes what ctx carried for it.
func WithOwner(ctx context.Context, name, owner string) context.Context {
	return with(ctx, contextOwner{owner: owner, name: name})
}

// WithHold returns a ctx of a call chain that holds lock: acquires of its name are made by its
// owner, and HoldsFrom finds the hold. The ctx keeps lock from being garbage-collected.
func WithHold(ctx context.Context, lock holder) context.Context {
	hold := lock.Hold()
	return with(ctx, contextOwner{owner: hold.Owner(), name: hold.Name(), lock: lock})
}

func with(ctx context.Context, o contextOwner) context.Context {
	o.outer, _ = ctx.Value(ownerKey{}).(*contextOwner)
	return context.WithValue(ctx, ownerKey{}, &o)
}

// OwnerFrom returns the owner that ctx carries for name: the one that was set last.
func OwnerFrom(ctx context.Context, name string) (string, bool) {
	o := ownerOf(ctx, name)
	if o == nil {
		return "", false
	}
	return o.owner, o.owner != ""
}

// HoldsFrom returns the holds of name that ctx carries, the latest first. It leaves out those of
// other owners than the one that ctx carries for name now: a ctx with a new owner begins a call
// chain of its own.
func HoldsFrom(ctx context.Context, name string) iter.Seq[Hold] {
	return func(yield func(Hold) bool) {
		first := ownerOf(ctx, name)
		for o := first; o != nil; o = o.outer {
			if o.lock != nil && o.name == name && o.owner == first.owner && !yield(o.lock.Hold()) {
				return
			}
		}
	}
}

// ownerOf returns what ctx carries for name: what was set last. It is nil if there is nothing.
func ownerOf(ctx context.Context, name string) *contextOwner {
	o, _ := ctx.Value(ownerKey{}).(*contextOwner)
	for o != nil && o.name != "" && o.name != name {
		o = o.outer
	}
	return o
}
