// Package limits proves the costs of waiting in one process, on a real server, with each of the
// three clients. It has tests only.
//
//   - 10,000 callers wait for one name: the server sees one subscribed connection, there are no
//     goroutines but the callers' own, and each gets the lock or gives up when its ctx ends.
//   - 1,000 names are waited for over one driver: one connection is subscribed to all of them.
//     Beside the callers' own there are goroutines only while a subscription is asked for, and
//     for commands on their way if the client needs them.
//
// The tests log the memory of a waiter: heap in use after a garbage collection, over the number of
// waiters, and the stacks of the callers' goroutines beside it. On amd64 a waiter beside others of
// its name takes 0.6 to 1.1 KiB of heap and 4 KiB of stack, its own. A name's only waiter takes 5
// to 16 KiB of heap, for the subscription and the open connections of commands on their way.
package limits
