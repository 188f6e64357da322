// Package simulate runs locks through schedules of faults in fake time, and checks each history
// with package history. What the clients do is package workload.
//
// A seed gives a [Plan]: one server, or five of a quorum; a strategy, with or without
// strategies/watchdog and middleware/retry; two or three clients of any providers, on the same
// names; what each of their goroutines does; and when which [Fault] happens. [Run] makes it happen
// in a bubble of testing/synctest: the real clients over an in-memory network to miniredis, whose
// keys expire by the bubble's clock. A minute there takes some hundredths of a second.
//
// The network delays, loses replies, breaks connections, leaves them half-open, freezes in one
// direction or both, and lets later connections overtake earlier ones, so that a command is
// executed long after its caller has given up. Servers freeze, restart, refuse, forget their
// scripts, step their clocks within the drift. Clients are paused, with their packets. Now and then
// a server loses its keys, or its clock leaps: what that breaks is counted as a loss, not as a
// violation.
//
// # What is checked
//
//   - What package history says, for each name. In every other plan workers pass holds on, and
//     others resume them. In every other plan for single with retry, the workers of a client hand
//     locks over to each other.
//   - In every other plan a client's log blocks for seconds, in callbacks of the workers that log,
//     and one worker's deadlines are hopeless. A quarter of these plans is contained: nothing else
//     goes wrong, every lock is watched, and a worker that neither logs nor is impatient must lose
//     no lock and get no error.
//   - When all is over, each server is searched: a key that is left, other than a fence counter
//     that will expire, is a violation.
//   - Every driver closes without an error, and no goroutine is left: synctest demands that.
//
// # What is repeated by a seed
//
// The plan, to the nanosecond, with the latency of each connection's packets and the pauses of
// middleware/retry. Not part of it are the order of goroutines that are ready at the same instant,
// the jitter of a quorum's waiters and the tokens, which come from the runtime. `make simulate`
// runs one goroutine at a time in each of its processes, and hardly two packets arrive at the same
// instant: three of four seeds give the same number of operations again. For the others REPEAT=100
// runs the schedule so often.
//
// # What is not covered
//
// miniredis is not Redis: it has no replication, no cluster, no memory limit, and its scripts run
// in another Lua. What depends on that is tested on real servers, see package torture. A client is
// a number of goroutines, not a process: when it is paused, its timers go on, and only what it
// sends and gets stands still, and what it would do next.
//
// A mutex that is held while its holder waits for the network stops fake time for good where
// another goroutine wants it too. go-redis does so in the handshake for maintenance notifications,
// which are switched off here.
package simulate
