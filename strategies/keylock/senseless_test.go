package keylock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// A number that no script of ours answers is neither a yes nor a no, and a fencing token is there
// where it was asked for, and only there.
func TestRepliesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	fenced := locker.Request{Name: name, Fenced: true}
	const grant = "*3\r\n:1\r\n$1\r\n5\r\n:0\r\n"
	acquire := func(context.Context, *locker.Lock, locker.Locker) error { return nil }
	renew := func(ctx context.Context, lock *locker.Lock, _ locker.Locker) error { return lock.Renew(ctx, time.Hour) }
	raise := func(ctx context.Context, lock *locker.Lock, _ locker.Locker) error {
		var bare lease.Lease
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { bare = inner; return inner })
		_, err := bare.Do(ctx, lease.Op{Kind: lease.OpRaiseFence, Fence: 6})
		return err
	}
	release := func(ctx context.Context, lock *locker.Lock, _ locker.Locker) error { return lock.Release(ctx) }
	upgrade := func(ctx context.Context, lock *locker.Lock, _ locker.Locker) error { return lock.Upgrade(ctx) }
	inspect := func(ctx context.Context, _ *locker.Lock, l locker.Locker) error {
		_, err := l.(locker.Inspector).Inspect(ctx, name)
		return err
	}
	for what, tt := range map[string]struct {
		only    string // the strategy; "": all
		req     locker.Request
		replies string
		do      func(context.Context, *locker.Lock, locker.Locker) error
	}{
		"no token for one that is fenced": {"", fenced, "*3\r\n:1\r\n$1\r\n0\r\n:0\r\n", acquire},
		"a token for one that is not":     {"rwhash", locker.Request{Name: name}, grant, acquire},
		"a number of conversions below 0": {"rwhash", fenced, "*3\r\n:1\r\n$1\r\n5\r\n:-1\r\n", acquire},
		"renew: 2":                        {"", fenced, grant + ":2\r\n", renew},
		"raise: 2":                        {"", fenced, grant + "*2\r\n:2\r\n$1\r\n9\r\n", raise},
		"raise: a token below":            {"", fenced, grant + "*2\r\n:1\r\n$1\r\n5\r\n", raise},
		"release: 4":                      {"", fenced, grant + ":4\r\n", release},
		"upgrade: no token":               {"rwhash", locker.Request{Name: name, Fenced: true, Mode: locker.Shared}, grant + "*2\r\n:1\r\n$1\r\n0\r\n", upgrade},
		"inspect: 2":                      {"rwhash", fenced, grant + "*6\r\n:2\r\n$1\r\no\r\n$0\r\n\r\n:1\r\n:1\r\n:0\r\n", inspect},
		"inspect: held by -1 holds":       {"rwhash", fenced, grant + "*6\r\n:1\r\n$1\r\no\r\n$0\r\n\r\n:1\r\n:-1\r\n:0\r\n", inspect},
		"inspect: no PTTL":                {"single", fenced, grant + "*2\r\n:1\r\n$1\r\nv\r\n", inspect},
		"inspect: no mode":                {"", fenced, grant + "*5\r\n:1\r\n$1\r\no\r\n$0\r\n\r\n:1\r\n:1\r\n", inspect},
	} {
		for _, s := range strategies {
			if tt.only != "" && tt.only != s.name {
				continue
			}
			t.Run(what+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					d := &hostile{replies: resp.NewReader(strings.NewReader(tt.replies))}
					l := locker.Must(s.new(d, settings{}))
					lock, err := l.Acquire(t.Context(), tt.req)
					if err == nil {
						deadline := lock.Deadline()
						err = tt.do(t.Context(), lock, l)
						if !lock.Deadline().Equal(deadline) {
							t.Error("the Deadline was moved")
						}
					}
					if !errors.Is(err, driver.ErrPermanent) || errors.Is(err, locker.ErrNotHeld) {
						t.Errorf("error %v; want one of a reply that makes no sense", err)
					}
				})
			})
		}
	}
}
