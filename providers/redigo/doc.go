// Package redigo lets Holdfast use github.com/gomodule/redigo: over a *redis.Pool, over a
// *redisc.Cluster of github.com/mna/redisc, and over Sentinel by a pool with a Dial for the master.
//
//	pool := &redis.Pool{
//		MaxIdle: 16,
//		DialContext: func(ctx context.Context) (redis.Conn, error) {
//			return redis.DialContext(ctx, "tcp", "localhost:6379")
//		},
//	}
//	drv, err := redigo.New(pool)
//
// # What is guaranteed
//
// The contract of package driver. In redigo's terms:
//
//   - A command is sent at most once. Only MOVED and ASK of a cluster, and NOSCRIPT, are followed
//     by another try, since they prove that nothing ran.
//   - Commands that come while others are under way travel together, up to 32 in one round trip: a
//     flight. Each caller has its own context, outcome and late reply. A lone command goes by
//     itself and at once. The driver of NewUnpipelined sends each by itself.
//   - An error before a command is written matches driver.ErrNotSent: of dialing and logging in, of
//     an exhausted or closed pool, of a ctx that ended meanwhile. An error reply is a
//     *driver.ServerError with redis.Error below, or with a plain error if that repeats a command's
//     arguments. After any other error (EOF, a reset, a timeout), which is returned as it is, the
//     outcome is unknown.
//   - A call returns soon after its ctx ends, even if redigo or a function of the pool ignores ctx.
//     The connection of an abandoned call waits for the reply, and serves no other call before. It
//     is closed if none comes within a second after a deadline, or two after a cancellation. A late
//     reply is available from driver.PendingError.
//   - At most MaxActive flights are under way; without MaxActive, MaxIdle or 32, whichever is more;
//     over a pool of another type, 1024; over a cluster, 64 to each master. Further calls wait in
//     the driver and fail with driver.ErrNotSent if their ctx ends meanwhile. One flight in eight,
//     at least one, is reserved for renewals, releases and conversions. A call whose ctx
//     never ends waits at the pool alone.
//   - A deadline of ctx takes the place of redis.DialReadTimeout, except in a dial.
//   - The driver has one connection of its own, for all subscriptions, dialed by the pool's
//     functions and not counted in MaxActive; over a cluster one more for each master with a
//     channel, see below.
//
// Not guaranteed: Info has no address, since a Pool does not report it. Connections must be
// redigo's own, or wrappers that implement redis.ConnWithTimeout; if they do not implement
// redis.ConnWithContext too, an abandoned call lasts until its reply or the deadline of its ctx.
//
// # Options of the pool
//
//   - MaxIdle is 0 by default: every call dials. Set it to the usual number of concurrent calls.
//   - With DialContext and without TestOnBorrow, TestOnBorrowContext, IdleTimeout and
//     MaxConnLifetime, lone calls run without a goroutine of their own: it saves about a quarter of
//     their time if the server is near. If the program itself, or another driver over the pool,
//     takes the last idle connection at that moment, such a call may dial under its ctx, and
//     redis.DialContext ignores that in the TLS handshake.
//   - TestOnBorrow or TestOnBorrowContext helps if the server closes idle connections. The first
//     use of such a connection ends in EOF, and the outcome is unknown: the server may have died
//     before the command or because of it. An IdleTimeout below the server's timeout helps too.
//   - redis.DialConnectTimeout and redis.DialTLSHandshakeTimeout are 30 s and 10 s by default. A
//     dial may continue in the background after its ctx; lower them if it matters.
//     redis.DialContext ignores ctx in the TLS handshake;
//     redis.DialContextFunc((&tls.Dialer{Config: config}).DialContext) obeys it.
//   - redis.DialReadTimeout and redis.DialWriteTimeout are unlimited by default. Set both if the pool
//     has Dial or TestOnBorrow: AUTH and other commands there know no ctx. A frozen server still
//     accepts connections: without a timeout each dial lasts until the server continues. The driver
//     leaves at most 256 such dials behind; further calls then fail with driver.ErrNotSent. They
//     count in MaxActive, too: with it, set Wait.
//
// # Cluster
//
//	cluster := &redisc.Cluster{
//		StartupNodes: []string{"10.0.0.1:6379", "10.0.0.2:6379"},
//		CreatePool: func(addr string, options ...redis.DialOption) (*redis.Pool, error) { ... },
//	}
//	drv, err := redigo.New(cluster) // no redisc.RetryConn
//
// Scripts go to the node of their first key, and MOVED and ASK are followed. A node without slots
// is unknown to redisc until its first slot has moved; until then commands for it fail with
// driver.ErrNotSent. redisc knows no contexts, so every call takes a goroutine; set
// redis.DialConnectTimeout, DialReadTimeout and DialWriteTimeout, and PoolWaitTime if the pools
// wait. The driver sends CLUSTER SLOTS every five seconds while it is in use, to distinguish the
// masters.
//
// redisc reads the slots anew after MOVED. A frozen master sends none when a replica takes over its
// slots, so the driver calls Refresh, up to once a second, after commands without a reply. Refresh
// asks one node after the other: without DialReadTimeout it may wait for the frozen one.
//
// With Redis 7.0 or later, or Valkey, a subscription is also made by SSUBSCRIBE at the master of
// its channel's slot, and follows the slot to another master. To that end the driver sends CLUSTER
// MYID on each new connection.
//
// # Sentinel
//
// With github.com/FZambia/sentinel/v2, the pool's Dial asks for the master (Dial, because
// MasterAddr takes no context), one call at a time: in v2.0.1 two at once race for the list of
// Sentinels.
//
//	Dial: func() (redis.Conn, error) {
//		one.Lock() // a sync.Mutex
//		addr, err := sntl.MasterAddr()
//		one.Unlock()
//		if err != nil {
//			return nil, err
//		}
//		c, err := redis.Dial("tcp", addr, redis.DialConnectTimeout(5*time.Second),
//			redis.DialReadTimeout(5*time.Second), redis.DialWriteTimeout(5*time.Second))
//		if err != nil {
//			return nil, err
//		}
//		if ok, err := sentinel.TestRole(c, "master"); !ok || err != nil {
//			c.Close()
//			return nil, errors.Join(fmt.Errorf("%s is no master", addr), err)
//		}
//		return c, nil
//	}
//
// The dials to the Sentinels need these timeouts too: a frozen server accepts a connection, and never
// answers.
//
// A connection outlives the role of its server. In an ordered failover of Redis 7.0 the old master
// kept its connections, and accepted writes that were lost, for ten seconds after the Sentinels had
// named the new one; only then do they close them. MaxConnLifetime of a second or two makes the
// pool ask again so often. Against the rest, use fencing tokens. The connection of the subscriptions
// stays as long as the old master answers: until then waiters are not woken, and try again by their
// own timers.
package redigo
