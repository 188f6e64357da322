// Package death tests what becomes of a lock whose process dies, freezes or forgets it: the waiters
// in another process get it within its TTL. It also tests what becomes of a queue of waiters when
// one of them dies or freezes, when the server loses the queue, and when its slot moves: the next
// one gets the lock within seconds, and nothing of the queue stays. A leader (package leader) is
// succeeded in the same way. Holders, waiters and candidates are processes of their own.
package death
