package goredis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	goleak.VerifyTestMain(m)
}

// quiet drops what go-redis logs about the failures that the tests cause.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// newDriver returns a driver over client and closes both after the test.
func newDriver(tb testing.TB, client redis.UniversalClient) driver.Driver {
	tb.Helper()
	drv, err := goredis.New(client)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = drv.Close() // the test may have closed it
		_ = client.Close()
	})
	return drv
}

// rest, called first in a bubble, lets come to an end what closed clients leave behind: time stands
// still once the bubble's function and its Cleanups have returned.
func rest(t *testing.T) {
	t.Cleanup(func() { <-time.After(time.Minute) })
}

// batcher is what a driver of this package is besides a Driver.
func batcher(drv driver.Driver) driver.Batcher { return drv.(driver.Batcher) }
