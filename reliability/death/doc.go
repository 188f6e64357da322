// Package death tests what becomes of a lock whose process dies, freezes or forgets it: the waiters
// in another process get it within its TTL. The holder is an executable of its own, over each
// provider and strategy.
package death
