//nolint:forbidigo // fake time
package recipes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/cenkalti/backoff/v4"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

// sharing waits like instances of another library that poll each 5 ms. It is for a migration: with
// a rarer poll, an instance of Holdfast would hardly ever find the lock free.
var sharing = holdfast.Config{Retry: retry.Config{
	Policy: func() backoff.BackOff { return backoff.NewConstantBackOff(5 * time.Millisecond) },
}}

// With the Policy an instance of Holdfast gets its share beside two pollers, and without it hardly
// any lock.
func TestSharingWithPollers(t *testing.T) {
	t.Parallel()
	type test struct {
		cfg  holdfast.Config
		fair bool
	}
	check.EachInFakeTime(t, map[string]test{
		"default": {holdfast.Config{}, false},
		"sharing": {sharing, true},
	}, func(t *testing.T, tt test) {
		ours, theirs := contend(t, tt.cfg)
		share := float64(ours) / float64(ours+theirs)
		t.Logf("%d of %d locks", ours, ours+theirs)
		check.Equal(t, fmt.Sprintf("a share of %.2f is fair", share), share > 0.28, tt.fair)
	})
}

// contend lets one instance of Holdfast and two of redislock, polling each 5 ms, work under one
// lock for three seconds. It returns the number of each kind's holds.
func contend(t *testing.T, cfg holdfast.Config) (ours, theirs int) {
	t.Helper()
	network := memnet.New()
	network.Latency = 100 * time.Microsecond
	server := memredis.Start(t, network)
	dial := func() *redis.Client {
		client := redis.NewClient(&redis.Options{
			Addr: server.Addr(), Dialer: network.Dial, ContextTimeoutEnabled: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	drv := locker.Must(goredis.New(dial()))
	t.Cleanup(func() { _ = drv.Close() })
	l := locker.Must(holdfast.New(drv, cfg))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	counts := make(chan int, 2)
	for i := range uint64(2) {
		locks, random := redislock.New(dial()), rand.New(rand.NewPCG(1, i))
		go func() {
			n := 0
			for ctx.Err() == nil {
				lock, err := locks.Obtain(ctx, "polled", expiry, &redislock.Options{RetryStrategy: redislock.LinearBackoff(5 * time.Millisecond)})
				if err != nil {
					break
				}
				n++
				time.Sleep(work(random))
				_ = lock.Release(context.WithoutCancel(ctx))
				time.Sleep(work(random))
			}
			counts <- n
		}()
	}
	random := rand.New(rand.NewPCG(1, 2))
	for ctx.Err() == nil {
		err := locker.Do(ctx, l, locker.Request{Name: "polled", TTL: expiry}, func(context.Context, *locker.Lock) error {
			ours++
			time.Sleep(work(random))
			return nil
		})
		if err != nil {
			break
		}
		time.Sleep(work(random))
	}
	return ours, <-counts + <-counts
}

// work is how long an instance holds the lock, and how long it then does something else.
func work(random *rand.Rand) time.Duration {
	return time.Duration(random.Int64N(int64(10 * time.Millisecond)))
}
