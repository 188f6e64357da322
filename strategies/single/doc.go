// Package single provides an exclusive lock in one Redis key.
//
//	l, err := single.New(drv, single.Config{})
//
// Acquire makes one attempt and does not wait, and the lock is not renewed: holdfast.New makes the
// chain that does. By default a lock has a TTL of 30 s, and its key is its name.
//
// The algorithm is SET key value NX PX ttl, and scripts that compare before they change
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/, "Correct
// implementation with a single instance").
//
// The key is Config.Prefix and the name, so other libraries locking with SET NX contend for it. The
// value is a token of 128 random bits, followed by the owner and the note if the Request has them.
// It is compared whole.
//
// # What is guaranteed
//
//   - An unfenced acquire of a free name is one SET; a fenced one is one script. A refusal sends
//     one more script, for the holder and the time left.
//   - A command without a reply is resent until its outcome is known, as long as ctx allows, at
//     most for the TTL or 30 s, whichever is longer. AttemptTimeout bounds each send. An acquire
//     abandoned meanwhile is cleaned up in the background for as long again, so a frozen server
//     cannot leave a key for longer than one TTL.
//   - Release returns within ReleaseTimeout, whatever ctx says: two AttemptTimeouts by default, or
//     one if ctx has ended. If it has no reply by then, it is resent in the background.
//   - A resume abandoned with its outcome unknown is undone in the background: the earlier Lock and
//     Handle of the hold work again.
//   - Leases expire by the server's clock. Deadline is by the local clock, from the send that
//     acquired the lock, less 1 % of the TTL and 2 ms. An acquire whose reply comes after it is
//     released and returns ErrLost.
//
// # What is not guaranteed
//
// A TTL under 3 ms is refused: the allowance for drift would use it up. A release in flight when
// the driver is closed may be cut off, and the key then stays until its TTL: close the driver when
// its calls have returned.
//
// The lock is not reentrant, whoever the owner is (strategies/reentrant is), and it has no shared
// mode (errors.ErrUnsupported). It does not wait by itself; middleware/retry around it does, and
// refuses an acquire that would wait for its own call chain (locker.ErrNested). It does not renew;
// put strategies/watchdog around it. A failover to a replica without the key lets a second holder
// in. If that matters, use fencing tokens, Config.MinReplicas or strategies/redlock.
//
// # Waiters
//
// The waiters of all processes queue at the server, in the sorted set {key}:waiters: each process
// has one place for a name. A release wakes the longest waiting one. By default a newcomer may take
// the free lock before it, which is fast; other waiters may not. With Config.Fair nobody passes the
// first waiter: every acquire is a script, and a release reserves the key for 500 ms for the first
// waiter, which also keeps other libraries out. They can take the key once a lease or a reservation
// has expired.
//
// A place counts for 5 s after the waiter's last attempt, and for longer if thousands are ahead and
// it polls more rarely. A woken waiter has 500 ms to try. A frozen one, or one whose messages are
// lost, delays the next one by up to 2.5 s, until the next one polls; it is not woken again for 30
// s. The key of the queue expires with the last place in it. [docs/contracts.md], contract 12, has
// the rules.
//
// # Replicas
//
// With Config.MinReplicas an acquire counts only once so many replicas have acknowledged it: WAIT
// (https://redis.io/docs/latest/commands/wait/) is sent right behind the script, on its connection.
// An acquire or a resume that falls short is undone and returns a *locker.ReplicaError
// (locker.ErrNotReplicated). It is an outage and no contention, so middleware/retry tries again. A
// renewal that falls short returns the same; the lock is held until its old Deadline, and
// strategies/watchdog tries again until then. A release needs no acknowledgement: a failover that
// undoes it keeps others out until the lease ends, and lets nobody in.
//
// So the lock survives a failover to any replica up to date with those that acknowledged it, and a
// master cut off from its replicas neither grants nor renews. It does not survive a failover to
// another replica. Sentinel promotes the replica with the most data, and a Cluster prefers it, but
// it need not have acknowledged while MinReplicas is less than the number of replicas. If
// MinReplicas is all of them, a single one down stops all locking. An acknowledged write is in the
// replica's memory, not on its disk.
//
// Each acquire, renewal and refusal then costs a round trip from master to replica (Redis counts a
// refusal's WAIT from the last write of anybody), and up to ReplicaTimeout while too few replicas
// follow. An unfenced acquire is a script, not a SET, and renewals are not batched. A server or a
// proxy that refuses WAIT makes every acquire fail. A fencing token raised by a quorum
// (strategies/redlock) is not waited for.
//
// [docs/contracts.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/contracts.md
package single
