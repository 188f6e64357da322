package redigo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/check"
)

// idleConn is a connection without a server.
type idleConn struct{ redis.Conn }

func (idleConn) Close() error                                           { return nil }
func (idleConn) Err() error                                             { return nil }
func (idleConn) Do(string, ...any) (any, error)                         { return nil, nil }
func (idleConn) DoContext(context.Context, string, ...any) (any, error) { return nil, nil }
func (idleConn) ReceiveContext(context.Context) (any, error)            { return nil, nil }

// A call in its caller's goroutine takes an idle connection only if no other call can take it first,
// since the pool would then dial: here for ever.
func TestTakeIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dials, freed := 0, make(chan struct{})
		p := newIdlePool(&redis.Pool{MaxIdle: 2, DialContext: func(context.Context) (redis.Conn, error) {
			if dials++; dials > 1 {
				<-freed
			}
			return idleConn{}, nil
		}})
		take := func() redis.Conn {
			conn, err := p.take(t.Context())
			check.Must(t, err)
			return conn
		}
		check.Equal(t, "taken from an empty pool", take(), nil)
		first, err := p.get(t.Context())
		check.Must(t, err)
		go func() { _, _ = p.get(t.Context()) }() // it dials
		synctest.Wait()
		check.OK(t, first.Close())
		check.Equal(t, "idle connections", p.IdleCount(), 1)
		check.Equal(t, "taken beside a call that gets", take(), nil)
		close(freed)
		synctest.Wait()
		taken := take()
		check.Equal(t, "taken", taken != nil, true)
		check.OK(t, taken.Close())
		check.Equal(t, "dials", dials, 2)
	})
}

// A call that may dial lets the one that takes go first, but does not wait long.
func TestGetWaitsForTake(t *testing.T) {
	t.Parallel()
	check.Each(t, map[string]struct{ takes, waits time.Duration }{
		"take ends":         {patience / 2, patience / 2},
		"take itself dials": {time.Minute, patience},
		"take ends at once": {0, 0},
	}, func(t *testing.T, tt struct{ takes, waits time.Duration }) {
		synctest.Test(t, func(t *testing.T) {
			p := newIdlePool(&redis.Pool{DialContext: func(context.Context) (redis.Conn, error) { return nil, errors.New("refused") }})
			if tt.takes > 0 {
				p.taking <- struct{}{}
				time.AfterFunc(tt.takes, func() { <-p.taking })
			}
			began := time.Now()
			_, err := p.get(t.Context())
			check.Equal(t, "the dial's error", err.Error(), "refused")
			check.Equal(t, "get waited for", time.Since(began), tt.waits)
		})
	})
}
