package reentrant_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

var errCut = errors.New("connection cut")

// fault is what happens to one command.
type fault struct {
	lose  bool          // the command is executed, its answer is lost
	late  time.Duration // the answer is lost at once; the command is executed this much later
	hang  bool          // no answer comes, and the command is never executed
	delay time.Duration // the answer comes this much later
	err   error         // this error, not executed
}

// faulty is a driver whose commands fail by plan; after the plan all is well.
type faulty struct {
	driver.Driver
	t *testing.T

	mu    sync.Mutex
	plan  []fault
	calls int
	late  sync.WaitGroup
}

func (f *faulty) next() fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if len(f.plan) == 0 {
		return fault{}
	}
	head := f.plan[0]
	f.plan = f.plan[1:]
	return head
}

func (f *faulty) then(plan ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.calls = plan, 0
}

func (f *faulty) sent() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Background passes on what driver.Base of the real driver does.
func (f *faulty) Background(run func(context.Context)) bool {
	return f.Driver.(driver.Backgrounder).Background(run)
}

func through[T any](ctx context.Context, f *faulty, call func(context.Context) (T, error)) (T, error) {
	var zero T
	switch fault := f.next(); {
	case fault.err != nil:
		return zero, fault.err
	case fault.hang:
		<-ctx.Done()
		return zero, ctx.Err()
	case fault.lose:
		if _, err := call(ctx); err != nil {
			f.t.Errorf("a command whose answer is to be lost failed: %v", err)
		}
		return zero, errCut
	case fault.late > 0:
		f.late.Go(func() {
			time.Sleep(fault.late) //nolint:forbidigo // fake time
			_, _ = call(context.Background())
		})
		return zero, errCut
	case fault.delay > 0:
		v, err := call(context.Background())
		select {
		case <-time.After(fault.delay):
			return v, err
		case <-ctx.Done():
			return zero, ctx.Err()
		}
	default:
		return call(ctx)
	}
}

func (f *faulty) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	return through(ctx, f, func(ctx context.Context) (bool, error) { return f.Driver.SetNX(ctx, key, value, ttl) })
}

func (f *faulty) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	keys, args = append([]string(nil), keys...), append([]string(nil), args...)
	return through(ctx, f, func(ctx context.Context) (driver.Reply, error) { return f.Driver.Eval(ctx, s, keys, args) })
}

// bench is a server of its own, whose time is the test's, and a Locker on it.
type bench struct {
	*reentrant.Locker
	drv *faulty
	m   *miniredis.Miniredis
}

// newBench is for synctest bubbles: no packet leaves the process.
func newBench(t *testing.T, cfg reentrant.Config) bench {
	t.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	client := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:6379", // never dialed
		Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
	})
	drv := &faulty{Driver: locker.Must(goredis.New(client)), t: t}
	t.Cleanup(func() {
		drv.late.Wait()
		if err := drv.Close(); err != nil && !errors.Is(err, locker.ErrClosed) {
			t.Errorf("close: %v", err)
		}
		if err := client.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		m.Close()
	})
	return bench{locker.Must(reentrant.New(drv, cfg)), drv, m}
}
