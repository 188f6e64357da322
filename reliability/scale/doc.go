// Package scale runs many processes in fake time, all waiting for one lock. It has tests only.
//
// Each process has a driver, and the real strategies/single and middleware/retry. The server is
// simulated: one thread runs the real scripts over a store in memory and takes a given time for
// each command; its clock, the network and the clients are in a bubble of testing/synctest. So
// 100,000 processes fit into one, and a result does not depend on the machine.
//
// `make scale` runs it with the flags in SCALEFLAGS and prints the times of hand-overs, the order
// of the served waiters, the server's commands for each, and its load. Without flags the tests
// check two hundred waiters: strict order with Fair, and a delay by dead or frozen waiters within
// the bounds of package keylock.
//
// [docs/scale.md] has the results of runs.
//
// [docs/scale.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/scale.md
package scale
