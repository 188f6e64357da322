// Package limits proves what waiting costs in one process, on a real server, with each of the three clients. It has tests only.
//
//   - 10,000 wait for one name: the server sees one subscribed connection, no goroutine is there but the callers' own, and each
//     gets the lock or gives up when its ctx ends.
//   - 1,000 names are waited for over one driver: one connection is subscribed to all of them, and each name has at most one
//     goroutine while it asks for its subscription, and none after.
//
// The tests log the memory of a waiter: heap in use after a garbage collection, over the number of waiters, and the stacks of
// the callers' goroutines beside it.
package limits
