package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

const expiry = 20 * time.Second // of every lock here, in the old version and in the new one

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
	for name, tt := range map[string]struct {
		old     version
		servers int
	}{
		"redislock":           {withRedislock, 1},
		"redsync":             {withRedsync, 1},
		"redsync at a quorum": {withRedsync, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartN(t, tt.servers, redistest.Options{})
			deploy := func(v version) process { return v(t, clientsOf(t, servers)) }
			work := newInvoice(t, clientsOf(t, servers)[0])
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // without it redislock waits for one TTL
			defer cancel()
			const replicas, each = 3, 3
			var fleet [replicas]process
			for i := range fleet {
				fleet[i] = deploy(tt.old)
			}
			for step := range 2*replicas + 1 {
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
							if err := p(ctx, "42", work.add); err != nil {
								t.Errorf("step %d: %v", step, err)
							}
						}
					})
				}
				all.Wait()
			}
			work.check(t, (2*replicas+1)*replicas*each)
			for _, s := range servers {
				if keys := s.MustCommand(t, "KEYS", "lock:invoice:42"); fmt.Sprint(keys) != "[]" {
					t.Errorf("%v is left at %s", keys, s.Addr())
				}
			}
		})
	}
}

// invoice is a row that is read, changed and written back: a lost update shows that two worked at
// once.
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
			Addr: s.Addr(), ContextTimeoutEnabled: true,
			DialerRetries: 1, MaxRetries: -1, // a server that is down is known to be down at once
		})
		t.Cleanup(func() { _ = clients[i].Close() })
	}
	return clients
}

// held is a lock of any of the libraries.
type held struct {
	renew, release func() error
}

// library makes one attempt at the lock in a key.
type library func(ctx context.Context, key string) (held, error)

func redislockLibrary(client *redis.Client) library {
	return func(ctx context.Context, key string) (held, error) {
		lock, err := redislock.Obtain(ctx, client, key, expiry, nil)
		return held{
			func() error { return lock.Refresh(ctx, expiry, nil) },
			func() error { return lock.Release(ctx) },
		}, err
	}
}

func redsyncLibrary(client *redis.Client) library {
	return func(ctx context.Context, key string) (held, error) {
		mutex := redsync.New(redsyncpool.NewPool(client)).NewMutex(key, redsync.WithExpiry(expiry))
		err := mutex.TryLockContext(ctx)
		return held{
			func() error { _, err := mutex.ExtendContext(ctx); return err },
			func() error { _, err := mutex.UnlockContext(ctx); return err },
		}, err
	}
}

func holdfastLibrary(t *testing.T, client *redis.Client) library {
	t.Helper()
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() { _ = drv.Close() })
	l := locker.Must(single.New(drv, single.Config{TTL: expiry}))
	return func(ctx context.Context, key string) (held, error) {
		lock, err := l.Acquire(ctx, locker.Request{Name: key, NoWait: true})
		return held{
			func() error { return lock.Renew(ctx, 0) },
			func() error { return lock.Release(ctx) },
		}, err
	}
}

// is reports whether err is, or contains, an error of that type.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// What the libraries return in the same situation, and that none renews or releases the lock of
// another one.
func TestMigrationErrors(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	down := redistest.Start(t, redistest.Options{})
	if err := down.Kill(); err != nil {
		t.Fatal(err)
	}
	type errorsOf struct{ refused, renewLate, releaseLate, releaseAgain, outage func(error) bool }
	lost := func(err error) bool { return errors.Is(err, locker.ErrLost) }
	taken := is[*redsync.ErrTaken]
	libraries := []struct {
		name string
		on   func(*redis.Client) library
		errorsOf
	}{
		{"redislock", redislockLibrary, errorsOf{
			func(err error) bool { return errors.Is(err, redislock.ErrNotObtained) },
			func(err error) bool { return errors.Is(err, redislock.ErrNotObtained) },
			func(err error) bool { return errors.Is(err, redislock.ErrLockNotHeld) },
			func(err error) bool { return errors.Is(err, redislock.ErrLockNotHeld) },
			func(err error) bool { return !errors.Is(err, redislock.ErrNotObtained) }, // the error of go-redis
		}},
		{"redsync", redsyncLibrary, errorsOf{
			taken, taken, taken,
			func(err error) bool { return errors.Is(err, redsync.ErrLockAlreadyExpired) },
			is[*redsync.RedisError],
		}},
		{"holdfast", func(client *redis.Client) library { return holdfastLibrary(t, client) }, errorsOf{
			func(err error) bool { return errors.Is(err, locker.ErrNotAcquired) }, lost, lost,
			func(err error) bool { return errors.Is(err, locker.ErrReleased) },
			func(err error) bool { return is[*locker.AttemptError](err) && !errors.Is(err, locker.ErrNotAcquired) },
		}},
	}
	client := clientsOf(t, []*redistest.Server{server})[0]
	check := func(t *testing.T, what string, err error, expected func(error) bool) {
		t.Helper()
		if err == nil || !expected(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i, pair := range [][2]int{{0, 2}, {2, 0}, {1, 2}, {2, 1}} {
		first, next := libraries[pair[0]], libraries[pair[1]]
		t.Run(first.name+" before "+next.name, func(t *testing.T) {
			t.Parallel()
			ctx, key := t.Context(), fmt.Sprint("lock:invoice:", i)
			old, err := first.on(client)(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			_, err = next.on(client)(ctx, key)
			check(t, next.name+" is refused", err, next.refused)
			client.Del(ctx, key) // as if its lease had ended
			present, err := next.on(client)(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			value := client.Get(ctx, key).Val()
			client.PExpire(ctx, key, expiry/2)
			check(t, first.name+" renews late", old.renew(), first.renewLate)
			check(t, first.name+" releases late", old.release(), first.releaseLate)
			if now := client.Get(ctx, key).Val(); now != value || client.PTTL(ctx, key).Val() > expiry/2 {
				t.Errorf("the lock of %s is now %q, was %q", next.name, now, value)
			}
			if err := errors.Join(present.renew(), present.release()); err != nil {
				t.Errorf("%s: %v", next.name, err)
			}
			check(t, first.name+" releases again, and nobody holds it", old.release(), first.releaseAgain)
		})
	}
	for _, l := range libraries {
		t.Run(l.name+" in an outage", func(t *testing.T) {
			t.Parallel()
			_, err := l.on(clientsOf(t, []*redistest.Server{down})[0])(t.Context(), "lock:invoice:42")
			check(t, "acquire", err, l.outage)
		})
	}
}

// The other library publishes nothing when it releases. A waiter finds out at its next poll, long
// before the lease ends.
func TestWaitBehindAnotherLibrary(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 1, redistest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lock := locker.Must(redislock.Obtain(ctx, clientsOf(t, servers)[0], "lock:invoice:42", time.Hour, nil))
	drv := locker.Must(goredis.New(clientsOf(t, servers)[0]))
	defer drv.Close()
	l := locker.Must(holdfast.New(drv, holdfast.Config{Single: single.Config{Prefix: "lock:"}}))

	var released sync.Once
	waits := locktrace.With(ctx, &locktrace.Trace{Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
		refused, ok := errors.AsType[*locker.ContentionError](info.Err)
		if !ok || !refused.Foreign || info.For > 400*time.Millisecond {
			t.Errorf("it waits for %v, because of: %v", info.For, info.Err)
		}
		released.Do(func() {
			if err := lock.Release(ctx); err != nil {
				t.Error(err)
			}
		})
	}})
	err := locker.Do(waits, l, locker.Request{Name: "invoice:42"}, func(context.Context, *locker.Lock) error { return nil })
	if err != nil {
		t.Error(err)
	}
}

// With WithSetNXOnExtend, redsync takes a lost lock again, and does not learn that another one had
// it in between.
func TestExtendAfterAnotherLibrary(t *testing.T) {
	t.Parallel()
	b := connect()
	defer b.close()
	for _, tt := range []struct {
		option redsync.Option
		want   bool
	}{{redsync.WithTries(1), false}, {redsync.WithSetNXOnExtend(), true}} {
		mutex := redsync.New(redsyncpool.NewPool(b.client)).NewMutex("invoice:42", redsync.WithExpiry(expiry), tt.option)
		if err := mutex.LockContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.server.FastForward(expiry)
		l := locker.Must(single.New(b.driver, single.Config{}))
		err := locker.Do(t.Context(), l, locker.Request{Name: "invoice:42"}, func(context.Context, *locker.Lock) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := mutex.ExtendContext(t.Context()); ok != tt.want {
			t.Errorf("ExtendContext: %v, %v; want %v", ok, err, tt.want)
		}
	}
}

// A name that MinHold keeps taken is taken for the other library too.
func TestMinHoldBeforeAnotherLibrary(t *testing.T) {
	t.Parallel()
	b := connect()
	defer b.close()
	l := locker.Must(single.New(b.driver, single.Config{}))
	lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "tick", TTL: time.Hour, MinHold: time.Minute}))
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := redislock.Obtain(t.Context(), b.client, "tick", expiry, nil); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("before MinHold has passed: %v", err)
	}
	b.server.FastForward(time.Minute)
	if _, err := redislock.Obtain(t.Context(), b.client, "tick", expiry, nil); err != nil {
		t.Errorf("after MinHold: %v", err)
	}
}

// Two majorities of the same servers have one in common, whichever library asks for them. With one
// of three servers down, both locks go on and exclude each other.
func TestQuorumOfBothLibraries(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3, redistest.Options{})
	old, migrated := withRedsync(t, clientsOf(t, servers)), withHoldfast(t, clientsOf(t, servers))
	errRan := errors.New("it ran beside another")
	for _, down := range []bool{false, true} {
		if down {
			if err := servers[0].Kill(); err != nil {
				t.Fatal(err)
			}
		}
		for _, pair := range [][2]process{{old, migrated}, {migrated, old}} {
			err := pair[0](t.Context(), "42", func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
				err := pair[1](ctx, "42", func(context.Context) error { return errRan })
				if err == nil || strings.Contains(err.Error(), errRan.Error()) {
					return errRan
				}
				return nil
			})
			if err != nil {
				t.Errorf("one down: %v: %v", down, err)
			}
		}
	}
}
