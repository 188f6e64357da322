// Package isolation measures, in fake time, what a fault of one process or of one node does to the
// processes that share a lock with it. It has tests only.
//
// Four processes contend for one lock. Each has a client, a driver, a Locker and middleware/retry of
// its own, and a proxy for its connections to each node. The clients are go-redis, rueidis, redigo
// and valkey-go. The nodes are miniredis: one, or five of a quorum. The callers of each process
// acquire, hold for 100 or 200 ms, and release.
//
// A row of the table is a kind of fault. It happens to the first process, to its connections, or to
// one node, and lasts until the end. The row bounds what it does to the other three processes: which
// part of their rate they keep (holds in 6 s, compared with a run without the fault), and how much
// longer their longest wait is. None of them may get an error. A row runs for one strategy, and for
// all if HOLDFAST_TEST=full.
//
// The processes share their memory and the machine. What a busy machine does to a process is not
// simulated.
package isolation
