// Package single is the lock on one Redis key: SET key value NX PX ttl, and scripts that compare before they change
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/, "Correct implementation with a single
// instance").
//
// The key is the name itself behind Config.Prefix, so that other libraries that lock with SET NX contend on it. The value
// is a token of 128 random bits, followed by owner and note where the Request gives them. It is compared whole.
//
// # What is guaranteed
//
//   - An unfenced acquire of a free name is one SET; a fenced one is one script. A refusal asks once more, in one script,
//     for the holder and the time left.
//   - A command whose answer is lost is sent again until the outcome is known, each send bounded by AttemptTimeout, as long
//     as ctx allows, though at most for the TTL or 30 s, whichever is longer. An acquire given up meanwhile is cleaned up
//     in the background for as long again, so that a server that was frozen cannot leave a key behind it for longer than
//     one TTL.
//   - Release returns within two AttemptTimeouts, whatever ctx says; where it has no answer by then, it is repeated in the
//     background.
//   - A resume that is given up with its outcome unknown is undone in the background: the Lock and the Handle that it would
//     have taken the hold from go on working.
//   - Expiry is by the server's clock. Deadline is by the local clock from before the send that won, less 1 % of the TTL and
//     2 ms; an acquire answered after it is given back and reported as ErrLost.
//
// # What is not
//
// A TTL under 3 ms is refused: the allowance for drift would use it up. What is under way when the driver is closed is not
// cleaned up after; close it when its calls have returned.
//
// It is not reentrant, whoever the owner is, and it has no shared mode (errors.ErrUnsupported). It does not wait; put
// middleware/retry around it. It does not renew; put strategies/watchdog around it. A failover to a replica that did not
// get the key yet lets a second holder in: use fencing tokens where that matters, Config.MinReplicas, or strategies/redlock.
//
// # Replicas
//
// With Config.MinReplicas a grant counts only once so many replicas have acknowledged it: WAIT
// (https://redis.io/docs/latest/commands/wait/) travels right behind the script, on its connection. An acquire or a resume that
// falls short is given back, as one is that comes too late, and ends in a *locker.ReplicaError (locker.ErrNotReplicated, an
// outage and no contention, so that middleware/retry tries again). A renewal that falls short ends in the same; the lock is
// held until its old Deadline, and strategies/watchdog tries again until then. A release needs no acknowledgement: a failover
// that undoes it keeps others out until the lease ends, and lets nobody in.
//
// So the lock outlives a failover to any replica that is up to date with those that acknowledged it, and a master that is cut
// off from its replicas neither grants nor renews. It does not outlive one to another replica: Sentinel promotes the one that
// has most, and a Cluster prefers it, but nothing forces it to be one that acknowledged while MinReplicas is less than the
// number of replicas. With all of them, one that is down stops all locking. An acknowledgement means that the replica has the
// write in memory, not on disk.
//
// It costs a round trip from master to replica for each acquire, renewal and refusal (Redis counts a refusal's WAIT from the
// last write of anybody), and up to ReplicaTimeout while too few replicas follow. An unfenced acquire is a script then, no SET,
// and renewals do not travel together. A server or a proxy that refuses WAIT makes every acquire fail. The fencing token that a
// quorum raises (strategies/redlock) is not waited for.
package single
