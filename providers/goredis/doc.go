// Package goredis lets Holdfast reach Redis and Valkey through github.com/redis/go-redis/v9: one
// server, a cluster, or a master behind Sentinels.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	drv, err := goredis.New(client)
//
// # What is guaranteed
//
//   - A command is sent at most once, whatever MaxRetries says. Only MOVED and ASK are followed,
//     which say that nothing ran. (By itself go-redis sends a SET NX again whose reply was lost,
//     and then finds the lock taken: by itself.)
//   - A call returns soon after its context ends: while it waits for a connection of the pool,
//     while the client dials or logs in, and while a reply is awaited.
//   - An error matches driver.ErrNotSent if the command never left: the client could not dial or
//     log in, its pool was used up, it was closed, or the context ended before the command was
//     written, also while the client was dialing. A command that a redis.AutoPipeliner has
//     queued counts as written. An error reply is a *driver.ServerError. The client's error is
//     below either.
//   - The client stays as it is: no option is changed, no hook added, and Close leaves it open. Its
//     hooks see each command with the values of the caller's context. One word of it, NX, a
//     script's digest or source, or the first number of a WAIT, is of a type with MarshalBinary and
//     String, by which the driver knows whether the command was sent. A hook that asserts
//     cmd.Args()[i].(string) panics there: use fmt.Sprint.
//   - Of a command whose caller has left before it was written, the client may still write a form
//     that the server refuses: that word is "-" then, a syntax error in SET, an unknown digest or a
//     script that does not compile. Nothing is executed, and the connection and the commands beside
//     it are as with any error reply.
//   - At most as many calls are in flight at a server as the client has connections to it
//     (PoolSize, MaxActiveConns), but at least two; a client that is neither one server, a cluster
//     nor a Ring gets 64 for each 256 slots. Batches count apart: 256 at once. Further calls wait
//     in the driver and fail with driver.ErrNotSent if their context ends meanwhile. One place in
//     eight, at least one, is reserved for renewals, releases and conversions. A call whose context
//     never ends waits in the client alone.
//   - All subscriptions share one connection beside the pool. It is dialed at the first, and again
//     after it broke; each listener is woken then.
//
// # What is not
//
//   - What was in flight when a context ended is finished behind the call, and its connection is
//     busy until then: until the reply, one second after the deadline (ContextTimeoutEnabled) or
//     ReadTimeout; a dial, until DialTimeout. With timeouts switched off, -1 or -2, that may be
//     never.
//   - Hooks of your own that call next twice, or change keys, do so here too.
//   - A redis.Ring moves keys to other servers when one is down, so a lock may be held twice. It
//     has no subscriptions.
//   - A script with a WAIT behind it (MinReplicas) goes to a node of a cluster or a Ring directly:
//     hooks of the node see it, those of the cluster client do not. A node without any slot yet, to
//     which ASK sends it, is not found. A client of your own type must have Conn, MasterForKey or
//     GetShardClientForKey, as it has where it embeds the client's.
//   - ReadTimeout must exceed the ReplicaTimeout of such a script.
//
// # Which options to set
//
// ContextTimeoutEnabled: true. Without it go-redis waits for a reply until ReadTimeout, whatever
// the context says; then each call takes a goroutine, which a caller can leave: about 10 µs on two
// cores. With it that is needed only for a context that can be canceled, for a redis.Ring and
// clients of your own making, and for cluster clients with ReadOnly, RouteByLatency or
// RouteRandomly.
//
// The rest is yours. MaxRetries does not matter here. Who holds a lock or waits for one occupies no
// connection of the pool.
package goredis
