package keylock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/redisson"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// ours are the strategies of this module by mode; the semaphore has 3 permits.
var ours = []struct {
	name string
	mode locker.Mode
	new  opener
}{
	{"single", locker.Exclusive, func(d driver.Driver) (locker.Locker, error) {
		return single.New(d, single.Config{AttemptTimeout: time.Minute})
	}},
	{"reentrant", locker.Exclusive, func(d driver.Driver) (locker.Locker, error) {
		return reentrant.New(d, reentrant.Config{AttemptTimeout: time.Minute})
	}},
	{"writer", locker.Exclusive, func(d driver.Driver) (locker.Locker, error) {
		return rwhash.New(d, rwhash.Config{AttemptTimeout: time.Minute})
	}},
	{"reader", locker.Shared, func(d driver.Driver) (locker.Locker, error) {
		return rwhash.New(d, rwhash.Config{AttemptTimeout: time.Minute})
	}},
	{"semaphore", locker.Exclusive, func(d driver.Driver) (locker.Locker, error) {
		return semaphore.New(d, semaphore.Config{Permits: 3, AttemptTimeout: time.Minute})
	}},
	{"redisson", locker.Exclusive, func(d driver.Driver) (locker.Locker, error) {
		return redisson.New(d, redisson.Config{AttemptTimeout: time.Minute})
	}},
}

// On a server out of memory, holders renew, convert, release, and undo a resume, and holds can be
// broken.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	drv := clients.All[0].Open(t, server.Addr())
	type holds struct{ first, second, resumed, kept *locker.Lock }
	var all []holds
	for _, s := range ours {
		l := locker.Must(s.new(drv))
		req := locker.Request{Name: s.name, Mode: s.mode, Owner: "me", TTL: time.Hour, Fenced: true}
		h := holds{first: locker.Must(l.Acquire(t.Context(), req))}
		h.second, _ = l.Acquire(t.Context(), req) // nil if the strategy has one holder
		h.resumed = locker.Must(locker.Resume(t.Context(), l, h.first.Handle()))
		req.Name, req.MinHold = "kept "+s.name, time.Minute
		h.kept = locker.Must(l.Acquire(t.Context(), req))
		req.Name, req.MinHold = "broken "+s.name, 0
		locker.Must(l.Acquire(t.Context(), req))
		all = append(all, h)
	}
	server.MustCommand(t, "CONFIG", "SET", "maxmemory", "1")
	for i, s := range ours {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := all[i]
			do := func(op lease.Op) error {
				_, err := leaseOf(h.resumed).Do(t.Context(), op)
				return err
			}
			_, err := locker.Must(s.new(drv)).Acquire(t.Context(), locker.Request{Name: "another", Mode: s.mode, Fenced: true})
			wantOOM(t, err)
			wantNone(t, do(lease.Op{Kind: lease.OpRaiseFence, Fence: h.resumed.Fence()})) // the counter is as high already
			wantOOM(t, do(lease.Op{Kind: lease.OpRaiseFence, Fence: h.resumed.Fence() + 1}))
			wantNone(t, do(lease.Op{Kind: lease.OpUndo}))
			for _, lock := range []*locker.Lock{h.second, h.first} {
				if lock == nil {
					continue
				}
				wantNone(t, lock.Renew(t.Context(), time.Hour))
				if s.name == "writer" {
					wantNone(t, lock.Downgrade(t.Context()))
					wantNone(t, lock.Renew(t.Context(), 2*time.Hour))
				}
				wantNone(t, lock.Release(t.Context()))
			}
			wantNone(t, h.kept.Release(t.Context()))
			wantNone(t, check.ErrOf(locker.Break(t.Context(), locker.Must(s.new(drv)), "broken "+s.name)))
		})
	}
}

// A release that finds the lock gone, as one that is sent again, wakes a waiter on a server out of
// memory too.
func TestReleaseOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	drv := clients.All[0].Open(t, server.Addr())
	fair := ours[0]
	fair.name, fair.new = "fair", func(d driver.Driver) (locker.Locker, error) {
		return single.New(d, single.Config{Fair: true, AttemptTimeout: time.Minute})
	}
	for _, s := range append(slices.Clone(ours[:5]), fair) { // redisson has no queue
		l := locker.Must(s.new(drv))
		req := locker.Request{Name: s.name, Mode: s.mode, TTL: time.Hour}
		if s.name == "semaphore" {
			req.Permits = 3
		}
		check.Eventually(t, "a waiter is woken: "+s.name, func() bool { // its place ends after some seconds
			lock := locker.Must(l.Acquire(t.Context(), req))
			id := lease.NewToken()
			ctx := lease.WithWaiting(t.Context(), lease.Waiting{ID: id, Since: time.Now()})
			_ = locktest.Refusal(t, check.ErrOf(l.Acquire(ctx, locker.Request{Name: s.name})))
			server.MustCommand(t, "DEL", s.name)
			server.MustCommand(t, "CONFIG", "SET", "maxmemory", "1")
			_, err := leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRelease})
			check.Error(t, s.name, err, locker.ErrLost)
			score := fmt.Sprint(server.MustCommand(t, "ZSCORE", "{"+s.name+"}:waiters", id))
			_, err = leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRelease})
			check.Error(t, s.name+", again", err, locker.ErrLost)
			server.MustCommand(t, "CONFIG", "SET", "maxmemory", "0")
			server.MustCommand(t, "DEL", s.name, "{"+s.name+"}:waiters") // fair: the lock is kept for the waiter
			return t.Failed() || strings.HasPrefix(score, "-")
		})
	}
}

func wantOOM(t *testing.T, err error) {
	t.Helper()
	check.Equal(t, "code of the error", driver.CodeOf(err), "OOM")
}

// without returns a driver whose user may run all commands but one.
func without(t *testing.T, server *redistest.Server, command string) driver.Driver {
	t.Helper()
	server.MustCommand(t, "ACL", "SETUSER", command, "on", ">secret", "allkeys", "allchannels", "+@all", "-"+command)
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr(), Username: command, Password: "secret", ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { _ = client.Close() })
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() { wantNone(t, drv.Close()) })
	return drv
}

// A user without the permission to set an expiry gets an error, and leaves no lock without one.
func TestExpiryNotPermitted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	noExpireAt, noExpire := without(t, server, "pexpireat"), without(t, server, "pexpire")
	for _, s := range ours {
		drv := noExpireAt
		if s.name == "redisson" {
			drv = noExpire
		}
		for what, req := range map[string]locker.Request{"": {}, ", fenced": {Fenced: true}, ", with a note": {Note: "at work"}} {
			if s.name == "single" {
				continue // its SET has the expiry
			}
			req.Name, req.Mode, req.TTL = s.name+what, s.mode, time.Minute
			_, err := locker.Must(s.new(drv)).Acquire(t.Context(), req)
			if driver.CodeOf(err) == "" || errors.Is(err, locker.ErrNotAcquired) {
				t.Errorf("%s: error %v, want the server's", req.Name, err)
			}
			check.Equal(t, "locks left of "+req.Name, server.MustCommand(t, "EXISTS", req.Name), any(int64(0)))
		}
	}
}

// A waiter whose user may not use all commands of the queue is refused as if no queue existed, and
// leaves no queue behind for ever.
func TestQueueThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	for _, command := range []string{"zadd", "zrank", "zscore", "pttl", "pexpire"} {
		l := locker.Must(reentrant.New(without(t, server, command), reentrant.Config{AttemptTimeout: time.Minute}))
		req := locker.Request{Name: command, TTL: time.Minute}
		held := locker.Must(l.Acquire(t.Context(), req))
		ctx := lease.WithWaiting(t.Context(), lease.Waiting{ID: lease.NewToken(), Since: time.Now().Add(-time.Second)})
		refusal := locktest.Refusal(t, check.ErrOf(l.Acquire(ctx, req)))
		check.Equal(t, "RetryAfter without "+command, refusal.RetryAfter, 0)
		left := server.MustCommand(t, "PTTL", "{"+command+"}:waiters")
		check.Equal(t, "TTL of the queue without "+command, left, any(int64(-2)))
		wantNone(t, held.Release(context.Background()))
	}
}
