package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/redisson"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// credentials are the addresses of servers, and the login.
type credentials struct {
	target

	tlsConfig        *tls.Config // nil without TLS
	sentinelPassword string
}

// client connects by one of the Redis clients. For one server it returns at once, and connects when
// it is used.
type client func(credentials) (*server, error)

var clients = map[string]client{"goredis": dialGoredis, "rueidis": dialRueidis, "redigo": dialRedigo, "valkey": dialValkey}

func clientNames() []string { return slices.Sorted(maps.Keys(clients)) }

// server is a connection to a target: one server, a Cluster, or the Sentinels' master.
type server struct {
	drv   driver.Driver
	close func()
}

// connection has the servers of a command line: one, or the nodes of a quorum.
type connection []*server

// connect connects to the servers of the options.
func (o *options) connect() (connection, error) {
	all, err := o.credentials()
	if err != nil {
		return nil, err
	}
	return o.connectTo(all)
}

// credentials returns the servers and logins of the options. It reads files once: a pipe cannot be
// read again.
func (o *options) credentials() ([]credentials, error) {
	if o.servers != nil {
		return o.servers, nil
	}
	if clients[o.client] == nil {
		return nil, fmt.Errorf("--client %q: want one of %s", o.client, strings.Join(clientNames(), ", "))
	}
	targets, err := o.targets()
	if err != nil {
		return nil, err
	}
	config, err := o.tls()
	if err != nil {
		return nil, err
	}
	var all []credentials
	for _, t := range targets {
		cred := credentials{target: t, sentinelPassword: os.Getenv("HOLDFAST_SENTINEL_PASSWORD")}
		if t.tls {
			cred.tlsConfig = config
		}
		all = append(all, cred)
	}
	o.servers = all
	return all, nil
}

// connectTo connects with the chosen client.
func (o *options) connectTo(all []credentials) (connection, error) {
	patience := o.connectTimeout
	if patience == 0 {
		patience = answerTimeout
	}
	var c connection
	for _, cred := range all {
		s, err := dial(clients[o.client], cred, patience)
		if err != nil {
			c.close()
			return nil, withStatus(err)
		}
		c = append(c, s)
	}
	return c, nil
}

// dial connects with a client. Some clients connect to a Cluster and to Sentinels at once, with
// timeouts of their own: dial tries again for as long as patience lasts, and no longer.
func dial(connect client, cred credentials, patience time.Duration) (*server, error) {
	type result struct {
		s   *server
		err error
	}
	var last error
	end := time.Now().Add(patience)
	for {
		got := make(chan result, 1)
		go func() {
			s, err := connect(cred)
			got <- result{s, err}
		}()
		select {
		case r := <-got:
			if r.err == nil || !driver.Transient(r.err) || refusedLogin(r.err) {
				return r.s, r.err
			}
			last = r.err
		case <-time.After(time.Until(end)): // the attempt ends with the program
		}
		if time.Until(end) < pauseToConnect {
			err := fmt.Errorf("no answer from %s in %s", strings.Join(cred.addrs, ","), patience)
			if last != nil {
				err = fmt.Errorf("%w: %w", err, last)
			}
			return nil, driver.NotSent(err)
		}
		<-time.After(pauseToConnect)
	}
}

// errNotUsed is the error of a connection opened before the client is used.
var errNotUsed = errors.New("the client is not used yet")

// dialer returns the connect timeout of rueidis and valkey-go. They do not try again within a
// command, so for one server it is the time allowed for an answer.
func (cred credentials) dialer() net.Dialer {
	if cred.kind == oneServer {
		return net.Dialer{Timeout: answerTimeout}
	}
	return net.Dialer{Timeout: dialTimeout}
}

// dialWhenUsed returns the dial function of rueidis and valkey-go. Their constructors open a
// connection, and would wait for a silent server. For one server dialWhenUsed makes that connection
// fail at once; the constructors still return a client.
func (cred credentials) dialWhenUsed() func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	var made atomic.Bool
	return func(ctx context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		switch {
		case cred.kind == oneServer && !made.Swap(true):
			return nil, errNotUsed
		case config == nil:
			return d.DialContext(ctx, cred.network, addr)
		default:
			return (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, cred.network, addr)
		}
	}
}

// close closes the drivers, and so cleans up, and the clients. It waits for up to closeTimeout,
// whether the servers answer or not.
func (c connection) close() {
	done := make(chan struct{}, len(c))
	for _, s := range c {
		go func() {
			_ = s.drv.Close()
			s.close()
			done <- struct{}{}
		}()
	}
	timeout := time.After(closeTimeout)
	for range c {
		select {
		case <-done:
		case <-timeout:
			return
		}
	}
}

// strategy returns the bare strategy over the servers: at one of them, or at a quorum.
func (c connection) strategy(name string, permits int, prefix string) (locker.Locker, error) {
	var nodes []locker.Locker
	for _, s := range c {
		l, err := newStrategy(s.drv, name, permits, prefix)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, l)
	}
	if len(nodes) == 1 {
		return nodes[0], nil
	}
	return redlock.New(nodes, redlock.Config{AttemptTimeout: attemptTimeout})
}

func newStrategy(drv driver.Driver, name string, permits int, prefix string) (locker.Locker, error) {
	switch name {
	case "single":
		return single.New(drv, single.Config{AttemptTimeout: attemptTimeout, Prefix: prefix})
	case "reentrant":
		return reentrant.New(drv, reentrant.Config{AttemptTimeout: attemptTimeout, Prefix: prefix})
	case "rwhash":
		return rwhash.New(drv, rwhash.Config{AttemptTimeout: attemptTimeout, Prefix: prefix})
	case "redisson":
		return redisson.New(drv, redisson.Config{AttemptTimeout: attemptTimeout, Prefix: prefix})
	case "semaphore":
		return semaphore.New(drv, semaphore.Config{AttemptTimeout: attemptTimeout, Prefix: prefix, Permits: permits})
	default:
		return nil, fmt.Errorf("strategy %q: %w", name, errors.ErrUnsupported)
	}
}

// open connects, and returns a Locker that waits, renews, and learns of release. Its holds have the
// note of their time, unless note is nil.
func (o *options) open(shared bool, note func(since time.Time) string) (locker.Locker, connection, error) {
	name, permits, err := parseStrategy(o.strategy, shared)
	if err != nil {
		return nil, nil, err
	}
	c, err := o.connect()
	if err != nil {
		return nil, nil, err
	}
	bare, err := c.strategy(name, permits, o.prefix)
	if err != nil {
		c.close()
		return nil, nil, err
	}
	l, err := holdfast.Wrap(noted{bare, note}, holdfast.Config{})
	if err != nil {
		c.close()
		return nil, nil, err
	}
	return breakable{l, c, o.prefix}, c, nil
}

// acquire acquires a lock. If the server does not answer at first, it tries for up to connect. If
// the lock is held, it calls onHeld and waits for the holder, and through outages, until the
// MaxWait of req; with NoWait it does not wait. The error of an unanswered acquire has the time
// tried.
func acquire(
	ctx context.Context, l locker.Locker, req locker.Request, connect time.Duration, onHeld func(error),
) (*locker.Lock, error) {
	begun, first := time.Now(), req
	first.NoWait = true
	var last error // of the latest attempt that had time to fail
	if req.MaxWait > 0 && req.MaxWait < connect {
		connect = req.MaxWait
	}
	for {
		first.MaxWait = max(connect-time.Since(begun), time.Millisecond)
		lock, err := l.Acquire(ctx, first)
		if err == nil {
			return lock, nil
		}
		if errors.Is(err, locker.ErrNotAcquired) {
			if req.NoWait {
				return nil, err
			}
			onHeld(err)
			break
		}
		// An acquire answered after its lease had ended is worth another attempt too.
		if !driver.Transient(err) || errors.Is(err, locker.ErrInvalid) {
			return nil, err
		}
		if last == nil || !errors.Is(err, locker.ErrMaxWait) || errors.Is(err, locker.ErrUnknownOutcome) {
			last = err
		}
		if tried := time.Since(begun); tried+pauseToConnect > connect {
			return nil, fmt.Errorf("%w; tried for %v", last, tried.Round(time.Millisecond))
		}
		select {
		case <-time.After(pauseToConnect):
		case <-ctx.Done():
			return nil, err
		}
	}
	if req.MaxWait > 0 {
		req.MaxWait = max(req.MaxWait-time.Since(begun), time.Millisecond)
	}
	return l.Acquire(ctx, req)
}

// pauseToConnect is the pause between two attempts to reach a server.
const pauseToConnect = 100 * time.Millisecond
