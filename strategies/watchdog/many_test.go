//nolint:forbidigo // fake time
package watchdog_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// slow is a Locker whose Leases do not name their server. A renewal takes a while. While silent is
// set, locks with the prefix "silent" get no reply.
type slow struct {
	granting
	takes  time.Duration
	silent *atomic.Bool
	name   string
}

func (s slow) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	s.name = req.Name
	return grant(ctx, req, s), nil
}

func (s slow) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	switch {
	case op.Kind != lease.OpRenew:
	case s.silent.Load() && strings.HasPrefix(s.name, "silent"):
		<-ctx.Done()
		return lease.Result{}, ctx.Err()
	default:
		time.Sleep(s.takes)
	}
	return s.granting.Do(ctx, op)
}

// Neither many locks without a reply nor a slow link starve a few locks, whatever their TTLs.
func TestFewAmongMany(t *testing.T) {
	t.Parallel()
	type test struct {
		takes   time.Duration
		many    string // the name of many locks
		n       int
		manyTTL time.Duration
		fewTTL  time.Duration
	}
	check.EachInFakeTime(t, map[string]test{
		"silent ones of a long TTL": {2 * time.Millisecond, "silent", 400, 10 * time.Minute, ttl},
		"silent ones":               {2 * time.Millisecond, "silent", 3000, ttl, ttl},
		"a slow link":               {50 * time.Millisecond, "answered", 5000, ttl, time.Second},
	}, func(t *testing.T, tt test) {
		s := slow{takes: tt.takes, silent: new(atomic.Bool)}
		l := locker.Must(watchdog.New(watchdog.Config{}))(s)
		many := acquireMany(t, t.Context(), l, tt.n, tt.many, tt.manyTTL)
		time.Sleep(tt.manyTTL / 4) // theirs come first
		few := acquireMany(t, t.Context(), l, 20, "few", tt.fewTTL)
		s.silent.Store(true)
		least := tt.fewTTL
		for start := time.Now(); time.Since(start) < max(tt.manyTTL/6, ttl); time.Sleep(20 * time.Millisecond) {
			for _, lock := range few {
				least = min(least, time.Until(lock.Deadline()))
			}
		}
		check.AtLeast(t, "what is left of a lease", least, tt.fewTTL/3)
		s.silent.Store(false)
		release(t, few...)
		for _, lock := range many {
			_ = lock.Release(t.Context())
		}
		time.Sleep(tt.manyTTL)
	})
}
