package goredis_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// A command that its caller has abandoned before it was written is not written afterwards, even if
// a hook takes its context away.
func TestAbandonedCommandIsNeverSent(t *testing.T) {
	t.Parallel()
	for kindName, kind := range kinds {
		for opName, name := range map[string]string{"SetNX": "SET", "Eval": "EVALSHA", "EvalMany": "EVALSHA"} {
			t.Run(kindName+"/"+opName, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					rest(t)
					f := &fake{answer: func([]string) string { return "+OK\r\n" }}
					client := kind(f.options())
					hook := &lateHook{resume: make(chan struct{})}
					client.AddHook(hook)
					drv := newDriver(t, client)
					if _, err := drv.SetNX(t.Context(), "warm", "v", time.Minute); err != nil {
						t.Fatal(err)
					}
					hook.on = true
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					if err := operations[opName](ctx, drv); !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, ctx.Err()) {
						t.Errorf("error %v, want ErrNotSent and %v", err, ctx.Err())
					}
					before := f.count(name)
					close(hook.resume)
					synctest.Wait()
					hook.on = false
					if n := f.count(name) - before; n != 0 {
						t.Errorf("%d commands were sent after their caller had left", n)
					}
					if _, err := drv.SetNX(t.Context(), "k", "v", time.Minute); err != nil {
						t.Errorf("afterwards: %v", err)
					}
				})
			})
		}
	}
}

// lateHook, while on, keeps commands until resume is closed, and then sends them under a context
// that never ends.
type lateHook struct {
	on     bool
	resume chan struct{}
}

func (h *lateHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *lateHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.on {
			_ = cmd.String() // as a log would
			<-h.resume
			ctx = context.WithoutCancel(ctx)
		}
		return next(ctx, cmd)
	}
}

func (h *lateHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if h.on {
			<-h.resume
			ctx = context.WithoutCancel(ctx)
		}
		return next(ctx, cmds)
	}
}
