// Package rueidis lets Holdfast use github.com/redis/rueidis: one server, a cluster, or a master
// behind Sentinels.
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
//     followed by another try, since they prove that nothing ran. The tries end a second after the
//     callers have left.
//   - Commands that come while others are under way travel together, up to 32 in one DoMulti: a
//     flight. Each caller has its own context, outcome and late reply. A lone command goes by
//     itself and at once. The driver of NewUnpipelined sends each by itself.
//   - An error matches driver.ErrNotSent only if the command was not sent: the client could not
//     connect, the server refused its handshake, no node has the slot, the keys of a script have
//     several slots, the client was closed before, or ctx had ended. An error reply is a
//     *driver.ServerError over the *rueidis.RedisError, or over a plain error if that repeats a
//     command's arguments. After any other error the outcome is unknown, also after the first
//     ErrClosing: rueidis returns it for commands in flight too, also when it leaves a master
//     deposed by Sentinels.
//   - A call returns soon after its ctx ends, by a deadline or by a cancellation, while the client
//     is connecting too.
//   - If its ctx ends within a second, a command is sent from a goroutine of its own: a late reply
//     resolves its outcome if the caller leaves before.
//   - A silent shared connection is avoided. rueidis keeps it until its own ping fails, eleven
//     seconds with default options; meanwhile commands for its node go over up to 16 connections of
//     the client's pool, and these are closed when they fail as well. A connection counts as silent
//     when a command on it has had no reply for half a second and its caller has left; renewals,
//     releases and conversions avoid it after 0.2 s. After 0.05 s a command uses a connection of
//     the pool if one of the 16 is free at once. The caller's own deadline does not matter, nor do
//     waiting commands. As soon as the reply comes, or the connection breaks, the shared
//     connections are used again. In a cluster the commands of a flight go one by one over the
//     connections of the pool, since rueidis cannot follow ASK with several there.
//   - Each node has its own limits, see below, and its own silent connections. In a cluster the
//     driver sends CLUSTER SLOTS every five seconds while it is in use, to distinguish the nodes.
//   - At most 28 flights of a node, 896 commands, are under way on its shared connections, and 16
//     on connections of the pool. Further commands wait, and fail with driver.ErrNotSent if their
//     ctx ends meanwhile. One flight in eight is reserved for renewals, releases and conversions
//     (driver.Urgent); they also go before waiting acquires.
//   - A script followed by WAIT (MinReplicas) gets a connection of the client's pool for itself,
//     since on a shared one it would delay all other commands. A node has up to 44 of them at once.
//   - All subscriptions share one connection of the pool, two with RESP2. It is closed when the
//     driver is.
//   - In a cluster of Redis 7.0 or later, or Valkey, a subscription is also made by SSUBSCRIBE,
//     over one more such connection to each master with a channel. It follows its slot to another
//     master; to a node new to the client, once a command was sent there by MOVED.
//
// # What is not guaranteed
//
//   - For good speed the driver trusts the shared connections once 64 commands in a row were
//     answered. If then an idle connection is lost, and the server accepts a new one but is silent,
//     the waiting calls return when the client gives up dialing (Dialer.Timeout, 5 s by default).
//     In a cluster it trusts none, and each call takes a goroutine.
//   - If the client is wrapped, as for tracing, and ctx ends while it is connecting, the outcome is
//     unknown although nothing was sent.
//   - AuthCredentialsFn with RefreshAfter: if a refresh fails, rueidis hands its error to the
//     commands in flight. If it looks like a failed dial or a refused login, it comes as
//     driver.ErrNotSent, though the command may have run.
//   - After rueidis has returned ErrClosing once, later commands count as not sent. If Sentinels
//     fail over while the program closes the client, one of them may have been sent.
//   - 1024 commands without an answer fill a connection (RingScaleEachConn: 10). The limits above
//     keep a driver below that; with a smaller RingScaleEachConn, or other users of the client,
//     further commands wait whatever their ctx says, unless the environment has
//     RUEIDIS_QUEUE_TYPE=flowbuffer.
//   - A call whose ctx never ends is bounded by ConnWriteTimeout alone, or on a pipelined
//     connection by the client's ping; while nodes answer MOVED to each other, by
//     ClusterOption.MaxMovedRedirections alone (none by default).
//   - An abandoned call continues in the client: a dial until Dialer.Timeout, a command until its
//     reply, the wait for a connection of the pool for a second or until the driver is closed. If
//     the client is closed while it dials, it keeps that connection open for good (v1.0.79:
//     mux.Close against mux._pipe).
//   - If other users exhaust the pool, each call that gives up waiting there makes the client count
//     one connection less, so that it may open more than BlockingPoolSize (v1.0.79: pool.Store
//     after a pool.Acquire whose ctx has ended).
//
// A cancellable ctx turns its connection to pipelining for good, as with the bare client. To a near
// server a command of a lone caller then takes about half as long again; to many callers it makes
// no difference.
//
// # Starting while a server is down
//
// rueidis.NewClient connects at once and fails if it cannot, after Dialer.Timeout (5 s) if nobody
// refuses. A quorum (strategies/redlock) need not wait: with ForceSingleClient, NewClient returns
// the client along with the error, and the client connects when it is used. Log the error and go on
// if the client is not nil. While the server is away, calls fail with driver.ErrNotSent. Once it is
// back, the next acquire takes it in, and the next renewal brings it the held locks.
// Example_quorumWithAServerDown of package holdfast shows it. A client for a cluster or for
// Sentinels is nil if none of them answers: make it later.
//
// # Options of the client
//
//   - ConnLifetime is refused by New. A command in flight on an expiring connection is sent again,
//     though it may have been executed. New cannot see the option behind a wrapper, such as one for
//     tracing.
//   - DisableAutoPipelining does not concern the driver's commands: without pipelining rueidis does
//     not notice a cancellation. DisableRetry changes nothing.
//   - BlockingPoolSize must leave room for the subscriptions, the 16 connections above and, with
//     MinReplicas, for 44 more.
//   - SendToReplicas must be false for scripts and SET, as cmd.IsReadOnly is.
//   - Sentinel.TopologyRefreshInterval of a few seconds corrects a client after a missed failover.
//   - DisableCache, and smaller ReadBufferEachConn and WriteBufferEachConn than half a MiB, suit a
//     client for locks alone.
//   - miniredis needs DisableCache, ForceSingleClient and AlwaysRESP2.
package rueidis
