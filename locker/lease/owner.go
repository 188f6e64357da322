package lease

import (
	"context"
	"iter"
)

type ownerKey struct{}

// contextOwner is the owner in a ctx for one name, or for all names if name is "". lock is the Lock
// whose Context made it, or nil; outer is the one of the outer ctx.
type contextOwner struct {
	owner, name string
	lock        holder
	outer       *contextOwner
}

// holder is a Lock.
type holder interface{ Hold() Hold }

// WithOwner returns a ctx for acquires of name by owner. An empty name means all names; an empty
// owner removes the one of ctx.
func WithOwner(ctx context.Context, name, owner string) context.Context {
	return with(ctx, contextOwner{owner: owner, name: name})
}

// WithHold returns a ctx for a call chain under lock: acquires of its name are made by its owner,
// and HoldsFrom finds the hold. The ctx keeps lock from being garbage-collected.
func WithHold(ctx context.Context, lock holder) context.Context {
	hold := lock.Hold()
	return with(ctx, contextOwner{owner: hold.Owner(), name: hold.Name(), lock: lock})
}

func with(ctx context.Context, o contextOwner) context.Context {
	o.outer, _ = ctx.Value(ownerKey{}).(*contextOwner)
	return context.WithValue(ctx, ownerKey{}, &o)
}

// OwnerFrom returns the owner for name in ctx: the one set last.
func OwnerFrom(ctx context.Context, name string) (string, bool) {
	o := ownerOf(ctx, name)
	if o == nil {
		return "", false
	}
	return o.owner, o.owner != ""
}

// HoldsFrom returns the holds of name in ctx, the latest first. It leaves out those of earlier
// owners: a ctx with a new owner begins a call chain of its own.
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

// ownerOf returns the contextOwner for name: the one set last, or nil.
func ownerOf(ctx context.Context, name string) *contextOwner {
	o, _ := ctx.Value(ownerKey{}).(*contextOwner)
	for o != nil && o.name != "" && o.name != name {
		o = o.outer
	}
	return o
}
