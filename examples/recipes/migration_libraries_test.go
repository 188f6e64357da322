package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	redsyncpool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

const expiry = time.Hour // of every lock here, in the old version and in the new one

// process is an instance of a service: it works on an invoice under its lock. The work is stopped
// with ctx, and in the new version when the lock is lost, too.
type process func(ctx context.Context, invoice string, work func(context.Context) error) error

// version makes a process, with clients of its own.
type version func(t *testing.T, clients []*redis.Client) process

// withRedislock is the old version of a service.
func withRedislock(_ *testing.T, clients []*redis.Client) process {
	locks := redislock.New(clients[0])
	return func(ctx context.Context, invoice string, work func(context.Context) error) error {
		lock, err := locks.Obtain(ctx, "lock:invoice:"+invoice, expiry, &redislock.Options{
			RetryStrategy: redislock.LinearBackoff(50 * time.Millisecond),
			Metadata:      "billing",
		})
		if err != nil {
			return err
		}
		return errors.Join(work(ctx), lock.Release(context.WithoutCancel(ctx)))
	}
}

// withRedsync is the old version of another service. It locks at a quorum of several servers.
func withRedsync(_ *testing.T, clients []*redis.Client) process {
	pools := make([]redsyncredis.Pool, len(clients))
	for i, client := range clients {
		pools[i] = redsyncpool.NewPool(client)
	}
	locks := redsync.New(pools...)
	return func(ctx context.Context, invoice string, work func(context.Context) error) error {
		mutex := locks.NewMutex("lock:invoice:"+invoice, redsync.WithExpiry(expiry), redsync.WithTries(1000))
		if err := mutex.LockContext(ctx); err != nil {
			return err
		}
		err := work(ctx)
		if ok, unlock := mutex.UnlockContext(context.WithoutCancel(ctx)); !ok {
			err = errors.Join(err, unlock)
		}
		return err
	}
}

// withHoldfast is the new version of both: the prefix and the name make the same key.
func withHoldfast(t *testing.T, clients []*redis.Client) process {
	t.Helper()
	cfg := single.Config{Prefix: "lock:", TTL: expiry}
	nodes := make([]locker.Locker, len(clients))
	for i, client := range clients {
		drv := locker.Must(goredis.New(client))
		t.Cleanup(func() { _ = drv.Close() })
		nodes[i] = locker.Must(single.New(drv, cfg))
	}
	strategy := nodes[0]
	if len(nodes) > 1 {
		strategy = locker.Must(redlock.New(nodes, redlock.Config{TTL: expiry}))
	}
	l := locker.Must(holdfast.Wrap(strategy, holdfast.Config{}))
	return func(ctx context.Context, invoice string, work func(context.Context) error) error {
		return locker.Do(ctx, l, locker.Request{Name: "invoice:" + invoice}, func(ctx context.Context, _ *locker.Lock) error {
			return work(ctx)
		})
	}
}

// A rolling deployment replaces one instance after another, and is rolled back the same way. In
// each step all instances work on the same invoice, old ones and new ones at the same time.
func TestRollingMigration(t *testing.T) {
	t.Parallel()
	type test struct {
		old     version
		servers int
	}
	check.Each(t, map[string]test{
		"redislock":           {withRedislock, 1},
		"redsync":             {withRedsync, 1},
		"redsync at a quorum": {withRedsync, 3},
	}, func(t *testing.T, tt test) {
		if tt.servers > 1 {
			effort.NeedFull(t)
		}
		servers := redistest.StartN(t, tt.servers, redistest.Options{})
		deploy := func(v version) process { return v(t, clientsOf(t, servers)) }
		work := newInvoice(t, clientsOf(t, servers)[len(servers)-1])
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // without it redislock waits for one TTL
		defer cancel()
		const replicas, each = 3, 3
		var fleet [replicas]process
		for i := range fleet {
			fleet[i] = deploy(tt.old)
		}
		for step := range 2*replicas + 1 {
			if tt.servers > 1 && step == replicas { // a majority is left
				check.Must(t, servers[0].Kill())
			}
			switch {
			case step == 0:
			case step <= replicas:
				fleet[step-1] = deploy(withHoldfast)
			default:
				fleet[step-replicas-1] = deploy(tt.old)
			}
			var all sync.WaitGroup
			for _, p := range fleet {
				all.Go(func() {
					for range each {
						check.Error(t, fmt.Sprint("step ", step), p(ctx, "42", work.add))
					}
				})
			}
			all.Wait()
		}
		work.check(t, (2*replicas+1)*replicas*each)
		for _, s := range servers[len(servers)/2:] {
			check.Equal(t, "keys at "+s.Addr(), fmt.Sprint(s.MustCommand(t, "KEYS", "lock:invoice:42")), "[]")
		}
	})
}

// invoice is a row to read, change and write back: a lost update shows two workers at once.
type invoice struct {
	t       *testing.T
	client  *redis.Client
	holders atomic.Int32
}

func newInvoice(t *testing.T, client *redis.Client) *invoice {
	t.Helper()
	return &invoice{t: t, client: client}
}

func (i *invoice) add(ctx context.Context) error {
	if n := i.holders.Add(1); n != 1 {
		i.t.Errorf("%d hold the lock", n)
	}
	defer i.holders.Add(-1)
	n, err := i.client.Get(ctx, "amount").Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	return i.client.Set(ctx, "amount", n+1, 0).Err()
}

func (i *invoice) check(t *testing.T, want int) {
	t.Helper()
	if n, err := i.client.Get(t.Context(), "amount").Int(); err != nil || n != want {
		t.Errorf("amount %d, %v; want %d", n, err, want)
	}
}

// clientsOf returns the clients of a new process.
func clientsOf(t *testing.T, servers []*redistest.Server) []*redis.Client {
	t.Helper()
	clients := make([]*redis.Client, len(servers))
	for i, s := range servers {
		clients[i] = redis.NewClient(&redis.Options{
			Addr: s.Addr(), ContextTimeoutEnabled: true, ReadTimeout: time.Minute,
			DialerRetries: 1, MaxRetries: -1, // a dead server is noticed at once
		})
		t.Cleanup(func() { _ = clients[i].Close() })
	}
	return clients
}

// With WithSetNXOnExtend, redsync takes a lost lock again, and does not learn of another holder in
// between.
func TestExtendAfterAnotherLibrary(t *testing.T) {
	t.Parallel()
	b := connect()
	defer b.close()
	for _, tt := range []struct {
		option redsync.Option
		want   bool
	}{{redsync.WithTries(1), false}, {redsync.WithSetNXOnExtend(), true}} {
		mutex := redsync.New(redsyncpool.NewPool(b.client)).NewMutex("invoice:42", redsync.WithExpiry(expiry), tt.option)
		check.Must(t, mutex.LockContext(t.Context()))
		b.server.FastForward(expiry)
		l := locker.Must(single.New(b.driver, single.Config{}))
		err := locker.Do(t.Context(), l, locker.Request{Name: "invoice:42"}, func(context.Context, *locker.Lock) error { return nil })
		check.Must(t, err)
		if ok, err := mutex.ExtendContext(t.Context()); ok != tt.want {
			t.Errorf("ExtendContext: %v, %v; want %v", ok, err, tt.want)
		}
	}
}
