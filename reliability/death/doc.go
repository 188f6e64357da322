// Package death tests that waiters in another process get a lock within its TTL after its holder's
// process dies, freezes or forgets the lock. It also tests the queue of waiters: if one of them
// dies or freezes, if the server loses the queue, or if its slot moves, the next waiter gets the
// lock within seconds, and no key of the queue stays. A leader (package leader) is succeeded in the
// same way. Holders, waiters and candidates are processes of their own.
package death
