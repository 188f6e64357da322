// Package reentrant is a lock that its owner can enter again: a hash per name, with a field for every hold.
//
// The owner is Request.Owner, else the one that ctx carries, else a fresh random one. locker.Do and Lock.Context carry it
// for the lock's own name, so that nested work re-enters; locker.WithOwner carries one for all names. Whoever acquires with
// the owner that holds enters at once, from any goroutine or process; others are refused with owner and note of the holder.
// An owner is an identity, no secret: those who are refused see it.
//
// # What is guaranteed
//
//   - Every acquire is a hold of its own, named by a token of 128 random bits, with a lease and a Deadline of its own. Nothing
//     is counted, so a command that is sent again changes nothing.
//   - The lock is free when its last live hold ends, by release or by the server's clock, in any order. A hold whose lease
//     ended is lost, though others of its owner live on: Renew does not bring it back, and Release says ErrLost.
//   - A tenure (free to held) has one fencing token, minted when the first acquire asks for one; every fenced acquire that
//     enters it gets the same. Resume of a fenced hold mints a fresh one for the tenure; the Locks of its other holds keep the
//     older.
//   - What is said in package single of lost answers, clean-up, Release, Resume and Deadline holds here too, for each hold.
//
// Entering again, renewing and releasing cost the server O(1), and so does a refusal, but for the first one after the hold
// with the longest lease was released, which looks at all holds. Holds that were never released and whose lease ended are
// removed a few at a time as others enter.
//
// # What is not
//
// The note is that of the acquire that began the tenure, or of a resume that gave one. A TTL under 3 ms is refused. There is
// no shared mode (errors.ErrUnsupported). It neither waits nor renews: put middleware/retry and strategies/watchdog around
// it. A failover to a replica that did not get the key yet lets a second owner in, unless Config.MinReplicas guards
// against it (see package single). Other libraries that lock by SET NX find a key of another type, and the other way round.
//
// Leases count in whole milliseconds of the server's clock, and one may end up to 1 ms before its TTL: of the drift for which a
// Deadline allows, so much is used up.
//
// Servers: Redis 6.2 (HRANDFIELD) and Valkey 7.2 or later. An ACL must allow, beside what package single needs, the commands
// exists, hdel, hget, hgetall, hlen, hmget, hrandfield, hset and pexpireat.
package reentrant
