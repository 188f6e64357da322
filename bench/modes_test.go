package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// What a careful user would write at the least for a field per reader, and one for the writer.
var (
	bareEnter = driver.NewScript(`if redis.call('HEXISTS', KEYS[1], 'writer') == 1 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)
	bareLeave = driver.NewScript(`return redis.call('HDEL', KEYS[1], ARGV[1])`)
)

// BenchmarkModes is acquire and release of a free name in either mode of rwhash, beside a minimal
// pair of scripts through the same driver, which knows no leases of readers, no wake-ups and no
// turns.
func BenchmarkModes(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	ctx := context.Background()
	for _, c := range clients {
		for _, mode := range []locker.Mode{locker.Shared, locker.Exclusive} {
			b.Run(fmt.Sprintf("%s/%v", c.name, mode), func(b *testing.B) {
				drv, _ := c.open(b, server.Addr())
				defer drv.Close()
				l := locker.Must(rwhash.New(drv, rwhash.Config{}))
				pair(b, 1,
					func(int) error {
						lock, err := l.Acquire(ctx, locker.Request{Name: "bench:modes", TTL: ttl, Mode: mode})
						if err != nil {
							return err
						}
						return lock.Release(ctx)
					},
					func(int) error {
						keys, token := []string{"bench:modes:bare"}, lease.NewToken()
						if _, err := drv.Eval(ctx, bareEnter, keys, []string{token, "30000"}); err != nil {
							return err
						}
						_, err := drv.Eval(ctx, bareLeave, keys, []string{token})
						return err
					},
				)
			})
		}
	}
}
