// Package rueidis lets Holdfast use github.com/redis/rueidis: one server, a cluster, or a master
// that Sentinels know.
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}})
//	...
//	drv, err := holdfastrueidis.New(client) // this package, imported under that name
//
// # What is guaranteed
//
// The contract of package driver. In rueidis' terms:
//
//   - A command is sent at most once. Only MOVED and ASK of a cluster, REDIRECT and NOSCRIPT are
//     followed by another try, since they prove that nothing ran.
//   - Commands of callers that come while others are under way travel together, up to 32 in one
//     DoMulti: a flight. Each caller has its own context, outcome and late reply. A lone command goes
//     by itself and at once. NewUnpipelined makes a driver that sends each by itself.
//   - An error matches driver.ErrNotSent only if the command was not sent: the client could not
//     connect, the server refused its handshake, no node has the slot, the keys of a script have
//     several slots, the client was closed before, or ctx had ended. An error reply is a *driver.ServerError that wraps the
//     *rueidis.RedisError. Any other error means that the outcome is unknown. That includes the
//     first ErrClosing: rueidis returns it for commands in flight too, also when it leaves a master
//     that Sentinels have deposed.
//   - A call returns soon after its ctx ends, by a deadline or by a cancellation, while the client
//     is connecting too.
//   - A command whose ctx ends within a second is sent from a goroutine of its own, so that the
//     late reply resolves its outcome if the caller leaves before.
//   - A shared connection that is silent is avoided. rueidis keeps it until its own ping fails,
//     eleven seconds with default options; meanwhile commands for its node go over up to 16
//     connections of the client's pool, which are closed when they fail as well. A connection
//     counts as silent when a command on it has had no reply for half a second and its caller has
//     left; renewals, releases and conversions avoid it after 0.2 s. After 0.05 s a command uses a
//     connection of the pool if one of the 16 is free at once. The caller's own deadline does not
//     matter, nor do commands that wait to be sent. As soon as the reply comes, or the connection
//     breaks, the shared connections are used again.
//   - What is known of connections, and the limits below, are each node's own. In a cluster the
//     driver sends CLUSTER SLOTS every five seconds while it is in use, to distinguish the nodes.
//   - At most 28 flights of a node, 896 commands, are under way on its shared connections, and 16 on
//     connections of the pool. Further commands wait, and fail with driver.ErrNotSent if their ctx
//     ends meanwhile. One flight in eight is reserved for renewals, releases and conversions
//     (driver.Urgent), which also go before waiting acquires.
//   - A script followed by WAIT (MinReplicas) gets a connection of the client's pool for itself,
//     since on a shared one it would delay all other commands. A node has up to 44 of them at once.
//   - All subscriptions share one connection of the pool, two with RESP2. It is closed when the
//     driver is.
//   - In a cluster of Redis 7.0 or later, or Valkey, a subscription is also made by SSUBSCRIBE,
//     over one more such connection to each master that has a channel. It follows its slot to
//     another master; to a node that is new to the client, once a command was sent there by MOVED.
//
// # What is not guaranteed
//
//   - For good speed the driver trusts the shared connections once 64 commands in a row were
//     answered. If then a connection is lost that nobody was waiting on, and the server accepts a
//     new one but is silent, the calls that wait for it return when the client gives up dialing
//     (Dialer.Timeout, 5 s by default). In a cluster it trusts none, and each call takes a
//     goroutine.
//   - If the client is wrapped, as for tracing, and ctx ends while it is connecting, the outcome is
//     unknown although nothing was sent.
//   - AuthCredentialsFn with RefreshAfter: if a refresh fails, rueidis hands its error to the
//     commands in flight. One that looks like a failed dial or a refused login comes as
//     driver.ErrNotSent then, though the command may have run.
//   - After rueidis has returned ErrClosing once, later commands count as not sent. If Sentinels
//     fail over while the program closes the client, one of them may have been sent.
//   - 1024 commands without an answer fill a connection (RingScaleEachConn: 10). The limits above
//     keep a driver below that; with a smaller RingScaleEachConn, or other users of the client,
//     further commands wait whatever their ctx says, unless the environment has
//     RUEIDIS_QUEUE_TYPE=flowbuffer.
//   - A call whose ctx never ends is bounded by ConnWriteTimeout alone, or on a pipelined
//     connection by the client's ping.
//   - What an abandoned call began continues in the client: a dial until Dialer.Timeout, a command
//     until its reply, the wait for a connection of the pool for a second or until the driver is
//     closed. A client that is closed while it dials keeps that connection open for good (v1.0.79:
//     mux.Close against mux._pipe).
//   - If other users exhaust the pool, each call that gives up waiting there makes the client count
//     one connection less, so that it may open more than BlockingPoolSize (v1.0.79: pool.Store
//     after a pool.Acquire whose ctx has ended).
//
// A ctx that can be cancelled turns the connection that serves it to pipelining for good, as it
// does with the bare client. To a near server a command of a lone caller then takes about half as
// long again; to many callers it makes no difference.
//
// # Starting while a server is down
//
// rueidis.NewClient connects at once and fails if it cannot, after Dialer.Timeout (5 s) where
// nobody refuses. A quorum (strategies/redlock) need not wait for that: with ForceSingleClient,
// NewClient returns the client along with the error, and the client connects when it is used. Log
// the error and go on if the client is not nil. While the server is away, calls fail with
// driver.ErrNotSent. Once it is back, the next acquire takes it in, and the next renewal brings it
// the locks that are held. Example_quorumWithAServerDown of package holdfast shows it. A client for
// a cluster or for Sentinels is nil where none of them answers: make it later.
//
// # Options of the client
//
//   - ConnLifetime is refused by New. A command in flight on a connection that expires is sent
//     again, though it may have been executed. New cannot see the option behind a wrapper, such as
//     one for tracing.
//   - DisableAutoPipelining does not concern the driver's commands: without pipelining rueidis does
//     not notice a cancellation. DisableRetry changes nothing.
//   - BlockingPoolSize must leave room for the subscriptions, the 16 connections above and, with
//     MinReplicas, for 44 more.
//   - SendToReplicas must be false for scripts and SET, as it is where it asks cmd.IsReadOnly.
//   - Sentinel.TopologyRefreshInterval of a few seconds corrects a client that missed a failover.
//   - DisableCache, and smaller ReadBufferEachConn and WriteBufferEachConn than half a MiB, suit a
//     client for locks alone.
//   - miniredis needs DisableCache, ForceSingleClient and AlwaysRESP2.
package rueidis
