package goredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
)

// dials is a hook for the error of a client's latest dial. While a caller waits, the client dials
// several times, with pauses between, and does not report their errors when the caller leaves.
type dials struct{ failed atomic.Pointer[dialFailure] }

// dialFailure is a failed dial.
type dialFailure struct {
	err error
	at  time.Time
}

var _ redis.Hook = (*dials)(nil)

// dialsOf has the hook of each client of a driver: a client has one, whatever the number of its
// drivers.
var dialsOf = struct {
	sync.Mutex
	byClient map[weak.Pointer[redis.Client]]*dials
}{byClient: map[weak.Pointer[redis.Client]]*dials{}}

// newDials returns the hook of client, and adds it unless it is there. It is nil for a client of
// several servers: its hooks do not see the dials.
func newDials(client redis.UniversalClient) *dials {
	c, ok := client.(*redis.Client)
	if !ok {
		return nil
	}
	key := weak.Make(c)
	dialsOf.Lock()
	defer dialsOf.Unlock()
	d := dialsOf.byClient[key]
	if d == nil {
		d = new(dials)
		dialsOf.byClient[key] = d
		runtime.AddCleanup(c, forgetDials, key)
		c.AddHook(d)
	}
	return d
}

func forgetDials(key weak.Pointer[redis.Client]) {
	dialsOf.Lock()
	defer dialsOf.Unlock()
	delete(dialsOf.byClient, key)
}

// DialHook implements redis.Hook.
func (d *dials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		switch {
		case err == nil:
			d.failed.Store(nil)
		case !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
			d.failed.Store(&dialFailure{err, time.Now()})
		}
		return conn, err
	}
}

// ProcessHook implements redis.Hook: commands pass it by.
func (*dials) ProcessHook(redis.ProcessHook) redis.ProcessHook { return nil }

// ProcessPipelineHook implements redis.Hook.
func (*dials) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook { return nil }

// explain adds the error of the latest dial to err, if the dial failed after began. err is of a
// call that began then and left without having sent anything.
func (d *dials) explain(err error, began time.Time) error {
	if d == nil {
		return err
	}
	if f := d.failed.Load(); f != nil && !f.at.Before(began) {
		return fmt.Errorf("%w: %w", err, f.err)
	}
	return err
}
