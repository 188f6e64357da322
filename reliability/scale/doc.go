// Package scale runs many processes that wait for one lock, in fake time. It has tests only.
//
// Each process has a driver, and the real strategies/single and middleware/retry. The
// server is simulated: one thread, which runs the real scripts over a store in memory and takes a
// given time for each command; its clock, the network and the clients are in a bubble of
// testing/synctest. So 100,000 processes fit into one, and a result does not depend on the machine.
//
// `make scale` runs it with the flags in SCALEFLAGS and prints how long hand-overs take, in which
// order waiters are served, what the server executes for each, and how busy it is. Without flags
// the tests check two hundred waiters: strict order with Fair, and that waiters that died or were
// frozen delay the others by no more than package keylock allows.
//
// [docs/scale.md] has the results of runs.
//
// [docs/scale.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/scale.md
package scale
