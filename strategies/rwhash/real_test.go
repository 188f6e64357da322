package rwhash_test

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
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// allowed lists the commands that the package documentation names, and those of single.
const allowed = "+getrange +set +del +pttl +pexpire +time +publish +eval +evalsha " +
	"+exists +hdel +hget +hgetall +hlen +hmget +hrandfield +hset +pexpireat +zadd +zrange +zrank +zrem +zscore"

// On a real server, as a user with only the documented permissions: every script, in all its
// branches.
func TestOnARealServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	args := []any{"ACL", "SETUSER", "locks", "on", ">secret", "~lock:*", "~{lock:*}:fence", "~{lock:*}:waiters",
		"resetchannels", "&{lock:*}:wake*", "+@connection"}
	for f := range strings.FieldsSeq(allowed) {
		args = append(args, f)
	}
	server.MustCommand(t, args...)
	for what, protocol := range map[string]int{"RESP2": 2, "RESP3": 3} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			client := redis.NewClient(&redis.Options{
				Addr: server.Addr(), Username: "locks", Password: "secret", Protocol: protocol, ContextTimeoutEnabled: true,
			})
			t.Cleanup(func() { _ = client.Close() })
			drv := locker.Must(goredis.New(client))
			t.Cleanup(func() { match(t, drv.Close()) })
			l := locker.Must(rwhash.New(drv, rwhash.Config{Prefix: "lock:", AttemptTimeout: time.Minute}))
			b := bench{Locker: l}
			read := locker.Request{Name: what, Mode: locker.Shared, Owner: "reader", TTL: time.Hour, Fenced: true}
			write := locker.Request{Name: what, Owner: "writer", TTL: time.Hour, Fenced: true}
			refused := func(req locker.Request) {
				t.Helper()
				_, err := l.Acquire(t.Context(), req)
				match(t, err, locker.ErrNotAcquired)
			}

			first := b.have(t, write)
			refused(read)
			match(t, first.Downgrade(t.Context()))
			dying := read
			dying.TTL = 200 * time.Millisecond
			for range 200 {
				if _, err := l.Acquire(t.Context(), dying); err != nil && !errors.Is(err, locker.ErrLost) {
					t.Fatal(err)
				}
			}
			for end := time.Now().Add(time.Minute); first.Upgrade(t.Context()) != nil; {
				if time.Now().After(end) {
					t.Fatal("dead readers keep the sole live one from upgrading")
				}
			}
			if first.Mode() != locker.Exclusive {
				t.Errorf("%v after an upgrade", first)
			}
			match(t, first.Downgrade(t.Context()))
			locks := []*locker.Lock{first}
			for range 300 {
				lock := b.have(t, read)
				if lock.Fence() != first.Fence() {
					t.Errorf("a reader's fence %d, the last writer's %d", lock.Fence(), first.Fence())
				}
				locks = append(locks, lock)
			}
			for tries := 1; ; tries++ { // on a busy machine the writer's intent may have lapsed
				refused(write)
				beside, err := l.Acquire(t.Context(), noWait(read))
				if errors.Is(err, locker.ErrNotAcquired) {
					break
				}
				match(t, err)
				if tries == 10 {
					t.Fatal("a reader gets in behind a writer that waits")
				}
				release(t, beside)
			}
			resumed, err := locker.Resume(t.Context(), l, locks[7].Handle())
			match(t, err)
			locks[7] = resumed
			match(t, resumed.Renew(t.Context(), 2*time.Hour))
			_, err = leaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: resumed.Fence() + 1})
			match(t, err)
			match(t, resumed.Upgrade(t.Context()), locker.ErrNotAcquired)
			for i := range locks {
				if i%100 == 0 {
					refused(noWait(write))
				}
				release(t, locks[len(locks)-1-i])
			}
			write.NoWait = true
			release(t, b.have(t, write))
			if n := server.MustCommand(t, "EXISTS", "lock:"+what); n != int64(0) {
				t.Error("the key is still there")
			}
		})
	}
}

// On a server that is out of memory holders can renew, convert and release: none of these needs
// memory.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() { match(t, drv.Close()) })
	l := locker.Must(rwhash.New(drv, rwhash.Config{}))
	lock, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute, Fenced: true})
	match(t, err)
	resumed, err := locker.Resume(t.Context(), l, lock.Handle())
	match(t, err)
	server.MustCommand(t, "CONFIG", "SET", "maxmemory", "1")
	_, err = l.Acquire(t.Context(), locker.Request{Name: "other"})
	if err == nil {
		t.Error("the server has memory for another lock")
	}
	// An existing counter needs no memory.
	_, err = leaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: resumed.Fence()})
	match(t, err)
	_, err = leaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: resumed.Fence() + 1})
	if driver.CodeOf(err) != "OOM" {
		t.Errorf("raised the counter: %v; want OOM", err)
	}
	_, err = leaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpUndo})
	match(t, err)
	match(t, lock.Renew(t.Context(), time.Hour))
	match(t, lock.Downgrade(t.Context()))
	match(t, lock.Renew(t.Context(), 2*time.Hour))
	match(t, lock.Release(t.Context()))
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
	l := locker.Must(rwhash.New(drv, rwhash.Config{}))
	for what, req := range map[string]locker.Request{"a writer": {}, "fenced": {Fenced: true}, "a reader": {Mode: locker.Shared}} {
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
