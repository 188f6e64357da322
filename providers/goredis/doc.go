// Package goredis lets Holdfast reach Redis and Valkey through github.com/redis/go-redis/v9: one
// server, a cluster, or a master behind Sentinels.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	drv, err := goredis.New(client)
//
// # What is guaranteed
//
//   - A command is sent at most once, whatever MaxRetries says. Only MOVED and ASK are followed,
//     since they prove that nothing ran. (go-redis alone would send a SET NX again after a lost
//     reply, and then find its own lock.)
//   - A call returns soon after its context ends: while it waits for a connection of the pool,
//     while the client dials or logs in, and while a reply is awaited.
//   - Commands that come while others are under way travel together, up to 32 in one pipeline: a
//     flight. Each caller has its own context, outcome and late reply. A lone command goes by
//     itself and at once. The driver of NewUnpipelined sends each by itself.
//   - An error matches driver.ErrNotSent if the command never left: the client could not dial or
//     log in, its pool was exhausted, it was closed, or the context ended before the command was
//     written, also while the client was dialing. A command queued by a redis.AutoPipeliner counts
//     as written. An error reply is a *driver.ServerError. Both wrap the client's error, or
//     a plain one if that repeats a command's arguments.
//   - The client is not changed: no option is set, and Close leaves it open. A client of one server
//     gets one hook, whatever the number of its drivers. It only records failed dials, for callers
//     whose context ends before they have a connection. The client's hooks see a lone command with
//     the values of its caller's context, and a flight as a pipeline, with the values of the first
//     one's. One argument (NX, a script's digest or source, or the first number of a WAIT) has a
//     type with MarshalBinary and String: it shows the driver whether the command was sent. A hook
//     that asserts cmd.Args()[i].(string) panics there: use fmt.Sprint.
//   - If a caller leaves before its command was written, the client may still write the command,
//     but the server refuses it: that argument is then "-", a syntax error in SET, an unknown
//     digest or no Lua. Nothing is executed. The connection and the other commands on it are not
//     affected.
//   - At most as many flights are under way to a server as the client has connections to it
//     (PoolSize, MaxActiveConns), but at least two; a client that is neither one server, a cluster
//     nor a Ring gets 64 for each 256 slots. Further calls wait in the driver and fail with
//     driver.ErrNotSent if their context ends meanwhile. One flight in eight, at least one, is
//     reserved for renewals, releases and conversions. A call whose context never ends waits in the
//     client instead.
//   - All subscriptions share one connection outside the pool. It is dialed for the first
//     subscription, and again when it breaks; every listener is woken then.
//   - In a cluster of Redis 7.0 or later, or Valkey, a subscription is also made by SSUBSCRIBE,
//     over one more connection to each master with a channel. It follows its slot to another
//     master. While there are subscriptions the client reloads its state every five seconds.
//
// # What is not guaranteed
//
//   - A command in flight when its context ends continues in the background and occupies its
//     connection until the reply, until one second after the deadline (ContextTimeoutEnabled), or
//     until ReadTimeout; a dial continues until DialTimeout. With timeouts switched off (-1 or -2)
//     it may never end.
//   - A call whose context ends at its deadline alone, more than a second away, may end up to 10 ms
//     after it.
//   - If the server has no place for one more client (maxclients), it says so and closes the
//     connection. go-redis often finds it closed before it reads: then the error is "broken pipe"
//     or "connection reset".
//   - Hooks of your own that call next twice, or change keys, do so here too.
//   - When Sentinels replace a master that still answers, the subscriptions stay there until it
//     closes their connection: until then waiters are not woken, and try again by their own timers.
//   - A redis.Ring moves keys to other servers when one is down, so a lock may be held twice. It
//     has no subscriptions.
//   - A script followed by WAIT (MinReplicas) is sent to the node of a cluster or a Ring directly:
//     hooks of the node see it, those of the cluster client do not. An ASK to a node that has no
//     slot yet cannot be followed. A client of your own type must have Conn, MasterForKey or
//     GetShardClientForKey, as a type that embeds the client's has.
//   - ReadTimeout must exceed the ReplicaTimeout of such a script.
//
// # Which options to set
//
// ContextTimeoutEnabled: true. Without it go-redis waits for a reply until ReadTimeout, whatever
// the context says, so a lone call needs a goroutine of its own: about 10 µs on two cores. With it
// only these calls do: under a cancelable context, over a redis.Ring or a client of your own type,
// over cluster clients with ReadOnly, RouteByLatency or RouteRandomly, and over clients with
// OnConnect or a provider of credentials, since these may ignore the context.
//
// DialerRetries: 1, if callers have little time. By default go-redis dials five times with pauses
// of 100 ms before it reports refused connections. With one dial the error comes at once, and
// middleware/retry tries again by its policy.
//
// Other options are up to you. MaxRetries has no effect here. Holders and waiters occupy no
// connection of the pool.
package goredis
