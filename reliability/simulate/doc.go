// Package simulate runs locks through schedules of faults in fake time, and checks each history
// with package history. Package workload has the calls of the clients.
//
// A seed gives a [Plan]: one server, or five of a quorum; a strategy, with or without
// strategies/watchdog and middleware/retry; two or three clients of any providers, on the same
// names; the calls of each of their goroutines; and the time of each [Fault]. [Run] executes it in
// a bubble of testing/synctest: the real clients over an in-memory network to miniredis, with keys
// that expire by the bubble's clock. A minute there takes some hundredths of a second.
//
// The network delays, loses replies, breaks connections, leaves them half-open, freezes in one
// direction or both, and lets later connections overtake earlier ones: a command is executed long
// after its caller has given up. Servers freeze, restart, refuse, forget their scripts, step their
// clocks within the drift. Clients are paused, with their packets. Now and then a server loses its
// keys, or its clock leaps. A promise broken by this counts as a loss, not as a violation.
//
// # What is checked
//
//   - The promises checked by package history, for each name. In every other plan workers pass
//     holds on, and others resume them. In every other plan for single or rwhash with retry, at
//     one server, the workers of a client hand locks over to one another.
//   - In every other plan a client's log blocks for seconds, in callbacks of the logging workers,
//     and in half of these plans one worker's deadlines are hopeless. A quarter of the plans with
//     a blocked log is contained: nothing else goes wrong, every lock is watched, and a worker
//     that neither logs nor is impatient must lose no lock and get no error.
//   - At the end each server is searched. A remaining key is a violation, unless it is a fence
//     counter with a TTL.
//   - Every driver closes without an error, and no goroutine is left, as synctest demands.
//
// # What is repeated by a seed
//
// A seed repeats the plan, to the nanosecond, with the latency of each packet and the pauses of
// middleware/retry. It does not repeat the order of goroutines ready at the same instant, the
// jitter of a quorum's waiters, or the tokens: they come from the runtime. `make simulate` runs one
// goroutine at a time in each of its processes, and two packets rarely arrive at the same instant.
// So three of four seeds give the same number of operations again. For the others, REPEAT=100 runs
// the schedule 100 times.
//
// # What is not covered
//
// miniredis is not Redis: it has no replication, no cluster, no memory limit, and its scripts run
// in another Lua. Package torture tests the rest on real servers. A client is a set of goroutines,
// not a process. A paused client sends, receives and decides nothing, but its timers go on.
//
// If the holder of a mutex waits for the network and another goroutine waits for the mutex, fake
// time stops forever. This happens in go-redis's handshake for maintenance notifications: they are
// switched off here.
package simulate
