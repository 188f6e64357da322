package goredis_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	clients.VerifyNoLeaks(m)
}

// quiet drops go-redis' logs of the failures caused by tests.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// newDriver returns a driver over client and closes both after the test.
func newDriver(tb testing.TB, client redis.UniversalClient) driver.Driver {
	tb.Helper()
	drv, err := goredis.New(client)
	check.Must(tb, err)
	tb.Cleanup(func() {
		_ = drv.Close() // the test may have closed it
		_ = client.Close()
	})
	return drv
}

// hook is a client's hook around each command, and around each pipeline.
type hook func(ctx context.Context, cmds []redis.Cmder, send func(context.Context) error) error

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h(ctx, []redis.Cmder{cmd}, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h(ctx, cmds, func(ctx context.Context) error { return next(ctx, cmds) })
	}
}

// sees is a hook that gets the context of each SET before it is sent.
func sees(f func(context.Context)) hook {
	return func(ctx context.Context, cmds []redis.Cmder, send func(context.Context) error) error {
		if cmds[0].Name() == "set" {
			f(ctx)
		}
		return send(ctx)
	}
}
