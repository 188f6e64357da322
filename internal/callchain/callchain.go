// Package callchain keeps in a context who acquires, and the locks under which it runs.
package callchain

import (
	"context"
	"iter"
)

type key struct{}

// link is the owner in a ctx for one name, or for all names if name is "". lock is the Lock whose
// Context made it, or nil; outer is the link of the outer ctx.
type link struct {
	owner, name string
	lock        any
	outer       *link
}

// WithOwner returns a ctx for acquires by owner, whatever the name. An empty owner removes that of
// ctx.
func WithOwner(ctx context.Context, owner string) context.Context {
	return with(ctx, link{owner: owner})
}

// WithLock returns a ctx for a call chain under lock: acquires of its name are made by its owner,
// and Locks finds lock. The ctx keeps lock from being garbage-collected.
func WithLock(ctx context.Context, name, owner string, lock any) context.Context {
	return with(ctx, link{owner: owner, name: name, lock: lock})
}

func with(ctx context.Context, l link) context.Context {
	l.outer, _ = ctx.Value(key{}).(*link)
	return context.WithValue(ctx, key{}, &l)
}

// Owner returns the owner for name in ctx: the one set last. It is empty if there is none.
func Owner(ctx context.Context, name string) string {
	l := linkOf(ctx, name)
	if l == nil {
		return ""
	}
	return l.owner
}

// Locks returns the locks of name in ctx, the latest first. It leaves out those of earlier owners:
// a ctx with a new owner begins a call chain of its own.
func Locks[L any](ctx context.Context, name string) iter.Seq[L] {
	return func(yield func(L) bool) {
		first := linkOf(ctx, name)
		for l := first; l != nil; l = l.outer {
			lock, ok := l.lock.(L)
			if ok && l.name == name && l.owner == first.owner && !yield(lock) {
				return
			}
		}
	}
}

// linkOf returns the link for name: the one set last, or nil.
func linkOf(ctx context.Context, name string) *link {
	l, _ := ctx.Value(key{}).(*link)
	for l != nil && l.name != "" && l.name != name {
		l = l.outer
	}
	return l
}
