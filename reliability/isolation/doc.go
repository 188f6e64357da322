// Package isolation measures, in fake time, the effects of a fault of one process or node on the
// other processes of a lock. It has tests only.
//
// Four processes contend for one lock. Each has a client, a driver, a Locker and middleware/retry of
// its own, and a proxy for its connections to each node. The clients are go-redis, rueidis, redigo
// and valkey-go. The nodes are miniredis: one, or five of a quorum. The callers of each process
// acquire, hold for 100 or 200 ms, and release.
//
// A row of the table is a kind of fault. It happens to the first process, to its connections, or to
// one node, and lasts until the end. The row bounds its effects on the other three processes: the
// least part of their rate (holds in 6 s, compared with a run without the fault), and the growth of
// their longest wait. None of them may get an error. A row runs for one strategy, and for all if
// HOLDFAST_TEST=full.
//
// The processes share their memory and the machine. The effects of a busy machine on a process are
// not simulated.
package isolation
