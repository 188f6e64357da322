package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// The minimal locks in a hash: they neither count holds nor know the time, mint nothing and tell
// nobody.
var (
	hashAcquire = driver.NewScript(`if redis.call("HSETNX", KEYS[1], "owner", ARGV[1]) == 0 then return 0 end ` +
		`redis.call("PEXPIRE", KEYS[1], ARGV[2]) return 1`)
	hashRelease = driver.NewScript(`if redis.call("HGET", KEYS[1], "owner") ~= ARGV[1] then return 0 end return redis.call("DEL", KEYS[1])`)
)

// BenchmarkReentrant is acquire and release of a free name by strategies/reentrant, beside the same
// pair by the bare client.
func BenchmarkReentrant(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	for _, c := range clients {
		for _, goroutines := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", c.name, goroutines), func(b *testing.B) {
				drv, _ := c.open(b, server.Addr())
				defer drv.Close()
				eval := c.eval(b, server.Addr())
				bare := func(_ context.Context, key, token string) error {
					if err := eval(hashAcquire, key, token, "30000"); err != nil {
						return err
					}
					return eval(hashRelease, key, token)
				}
				compare(context.Background(), b, locker.Must(reentrant.New(drv, reentrant.Config{})), bare, goroutines, false)
			})
		}
	}
}
