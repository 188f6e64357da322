package redigo

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// idlePool is a pool from which a call may take an idle connection in its caller's goroutine. The call
// must not dial there: redis.DialContext does not pass ctx to the TLS handshake. A redis.Pool dials if
// it has no idle connection, so take makes sure that there is one.
type idlePool struct {
	*redis.Pool

	taking  chan struct{} // full while take looks and takes
	getting atomic.Int32  // calls of get under way: each may take an idle connection

	learn    sync.Once
	closable atomic.Bool // a connection in use can be closed
}

func newIdlePool(p *redis.Pool) *idlePool { return &idlePool{Pool: p, taking: make(chan struct{}, 1)} }

// handsOutAtOnce reports whether p neither tests an idle connection nor dials in place of an old one.
func handsOutAtOnce(p *redis.Pool) bool {
	return p.DialContext != nil && p.TestOnBorrow == nil && p.TestOnBorrowContext == nil && p.IdleTimeout == 0 &&
		p.MaxConnLifetime == 0
}

// has reports whether a call may be sent in its caller's goroutine: there is an idle connection, and it
// can be closed when ctx ends.
func (p *idlePool) has(context.Context) bool { return p.closable.Load() && p.IdleCount() > 0 }

// take takes an idle connection. It returns nil if others may take all of them. Only if the program
// takes one at the same moment, the pool may dial.
func (p *idlePool) take(ctx context.Context) (redis.Conn, error) {
	select {
	case p.taking <- struct{}{}:
		defer func() { <-p.taking }()
	default:
		return nil, nil
	}
	if p.IdleCount() <= int(p.getting.Load()) {
		return nil, nil
	}
	return p.GetContext(ctx)
}

// patience is how long get waits for take, which takes far less unless the pool dials.
const patience = 10 * time.Millisecond

// get takes a connection, or dials.
func (p *idlePool) get(ctx context.Context) (redis.Conn, error) {
	p.getting.Add(1)
	defer p.getting.Add(-1)
	select {
	case p.taking <- struct{}{}:
		<-p.taking // take has not looked, or will see that this call gets
	default:
		p.await()
	}
	conn, err := p.GetContext(ctx)
	if err == nil {
		p.learn.Do(func() { p.closable.Store(closable(conn)) })
	}
	return conn, err
}

// await waits for the end of take.
func (p *idlePool) await() {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case p.taking <- struct{}{}:
		<-p.taking
	case <-timer.C:
	}
}

// closable reports whether closeNetwork can close conn.
func closable(conn redis.Conn) bool {
	_, err := redis.DoContext(conn, context.Background(), "") // sends nothing
	return err == nil
}
