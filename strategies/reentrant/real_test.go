package reentrant_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// allowed lists the commands that the package documentation names, and those of single.
const allowed = "+getrange +set +del +pttl +pexpire +time +publish +eval +evalsha " +
	"+exists +hdel +hget +hgetall +hlen +hmget +hrandfield +hset +pexpireat +zadd +zrange +zrank +zrem +zscore"

// On a real server, as a user with only the documented permissions: many holds, of which many
// expire, and contenders.
func TestManyHoldsOnARealServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	server.MustCommand(t, append([]any{"ACL", "SETUSER", "locks", "on", ">secret", "~lock:*", "~{lock:*}:fence", "~{lock:*}:waiters", "resetchannels", "&{lock:*}:wake*", "+@connection"},
		fields(allowed)...)...)
	for what, protocol := range map[string]int{"RESP2": 2, "RESP3": 3} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			client := redis.NewClient(&redis.Options{
				Addr: server.Addr(), Username: "locks", Password: "secret", Protocol: protocol, ContextTimeoutEnabled: true,
			})
			t.Cleanup(func() { _ = client.Close() })
			drv := locker.Must(goredis.New(client))
			t.Cleanup(func() { match(t, drv.Close()) })
			l := locker.Must(reentrant.New(drv, reentrant.Config{Prefix: "lock:", AttemptTimeout: time.Minute}))
			mine := locker.Request{Name: what, Owner: "me", TTL: time.Hour, Fenced: true}
			refused := func() {
				t.Helper()
				_, err := l.Acquire(t.Context(), locker.Request{Name: what})
				match(t, err, locker.ErrNotAcquired)
			}

			first, err := l.Acquire(t.Context(), mine)
			match(t, err)
			dying := mine
			dying.TTL = 200 * time.Millisecond
			for range 200 {
				if _, err := l.Acquire(t.Context(), dying); err != nil && !errors.Is(err, locker.ErrLost) {
					t.Fatal(err)
				}
			}
			for end := time.Now().Add(time.Minute); ; {
				state, err := l.Inspect(t.Context(), what)
				match(t, err)
				if state.Holds == 1 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%d holds are left", state.Holds)
				}
			}
			locks := []*locker.Lock{first}
			for range 300 {
				lock, err := l.Acquire(t.Context(), mine)
				match(t, err)
				if lock.Fence() != first.Fence() {
					t.Errorf("fence %d in the tenure of %d", lock.Fence(), first.Fence())
				}
				locks = append(locks, lock)
			}
			if n, ok := server.MustCommand(t, "HLEN", "lock:"+what).(int64); !ok || n > 301+100 {
				t.Errorf("%d fields for 301 live holds", n)
			}
			for i := range locks {
				if i%100 == 0 {
					refused()
				}
				release(t, locks[len(locks)-1-i])
			}
			if n := server.MustCommand(t, "EXISTS", "lock:"+what); n != int64(0) {
				t.Error("the key is still there")
			}
		})
	}
}

func fields(text string) (args []any) {
	for f := range strings.FieldsSeq(text) {
		args = append(args, f)
	}
	return args
}

// On a server that is out of memory holders can renew and release: both need no memory.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() { match(t, drv.Close()) })
	l := locker.Must(reentrant.New(drv, reentrant.Config{}))
	mine := locker.Request{Name: name, Owner: "me", TTL: time.Minute, Fenced: true}
	outer, err := l.Acquire(t.Context(), mine)
	match(t, err)
	inner, err := l.Acquire(t.Context(), mine)
	match(t, err)
	resumed, err := locker.Resume(t.Context(), l, inner.Handle())
	match(t, err)
	server.MustCommand(t, "CONFIG", "SET", "maxmemory", "1")
	// An existing counter needs no memory.
	_, err = leaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: resumed.Fence()})
	match(t, err)
	_, err = leaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: resumed.Fence() + 1})
	if driver.CodeOf(err) != "OOM" {
		t.Errorf("raised the counter: %v; want OOM", err)
	}
	_, err = leaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpUndo})
	match(t, err)
	if _, err = l.Acquire(t.Context(), mine); err == nil {
		t.Error("the server has memory for another hold")
	}
	for _, lock := range []*locker.Lock{inner, outer} {
		match(t, lock.Renew(t.Context(), time.Hour))
		match(t, lock.Release(t.Context()))
	}
}

// A user without the permission to set an expiry gets an error, and leaves no lock without one.
func TestExpiryNotPermitted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	server.MustCommand(t, "ACL", "SETUSER", "locks", "on", ">secret", "~*", "&*", "+@all", "-pexpireat")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "locks", Password: "secret", ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() { match(t, drv.Close()) })
	l := locker.Must(reentrant.New(drv, reentrant.Config{}))
	for what, req := range map[string]locker.Request{"plain": {}, "fenced": {Fenced: true}, "with a note": {Note: "at work"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			req.Name = what
			if lock, err := l.Acquire(ctx, req); err == nil {
				t.Errorf("%v was acquired", lock)
			}
			if n := server.MustCommand(t, "EXISTS", what); n != int64(0) {
				t.Errorf("a lock is left, with an expiry of %v ms", server.MustCommand(t, "PTTL", what))
			}
		})
	}
}
