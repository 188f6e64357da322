package rueidis_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// A dead connection is silent, and unanswered acquires occupy all but a few of its replacements.
// Commands that keep or end a hold pass them.
func TestUrgentPassesAcquires(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m, p := clients.Proxied(t)
		opts := single(m.Net.Dial, p.Addr())
		opts.ConnWriteTimeout, opts.PipelineMultiplex = forever, -1
		drv := dial(t, opts)
		t.Cleanup(p.CutAll)
		p.Fail("lost", faultproxy.DropReply)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := drv.SetNX(ctx, "lost", "v", time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("SetNX whose reply is lost: %v, want DeadlineExceeded", err)
		}
		trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains("stalled"), Every: true, Fault: faultproxy.Stall})
		defer trap.Release()
		stalled, stop := context.WithCancel(t.Context())
		defer stop()
		for range 2000 {
			go func() { _, _ = drv.SetNX(stalled, "stalled", "v", time.Minute) }()
		}
		synctest.Wait()
		acquire := func() {
			ctx := bounded.New(context.Background(), 50*time.Millisecond)
			defer ctx.Stop()
			if _, err := drv.SetNX(ctx, "acquire", "v", time.Minute); !errors.Is(err, driver.ErrNotSent) {
				t.Errorf("an acquire behind others: %v, want ErrNotSent", err)
			}
		}
		acquire()
		for i := range 20 {
			urgent := &bounded.Context{IsUrgent: true}
			began := time.Now()
			urgent.Start(context.Background(), began.Add(patience))
			if _, err := drv.SetNX(urgent, fmt.Sprint("urgent", i), "v", time.Minute); err != nil || time.Since(began) != 0 {
				t.Errorf("an urgent call: %v after %v", err, time.Since(began))
			}
			urgent.Stop()
		}
		acquire()
	})
}

// 1024 commands without an answer fill a connection, and the client does not look at ctx then.
func TestMoreCallsThanAConnectionTakes(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		const calls, most = 3000, 1500
		m, p := clients.Proxied(t)
		opts := single(m.Net.Dial, p.Addr())
		opts.ConnWriteTimeout, opts.PipelineMultiplex = forever, -1
		drv := dial(t, opts)
		t.Cleanup(p.CutAll)
		answered(t, drv, 100)
		p.Freeze()
		errs := make(chan error, calls)
		began := time.Now()
		for i := range calls {
			parent := t.Context()
			if i%2 == 0 {
				parent = context.Background()
			}
			go func() {
				ctx := bounded.New(parent, patience)
				defer ctx.Stop()
				_, err := drv.SetNX(ctx, "k", "v", time.Minute)
				errs <- err
			}()
		}
		unknown := 0
		for range calls {
			switch err := <-errs; {
			case errors.Is(err, driver.ErrNotSent):
			case errors.Is(err, context.DeadlineExceeded):
				unknown++
			default:
				t.Fatalf("SetNX at a frozen server: %v, want DeadlineExceeded or ErrNotSent", err)
			}
		}
		check.Took(t, "the calls", began, patience)
		if unknown > most {
			t.Errorf("%d of %d calls have an unknown outcome; want %d at most, the others wait unsent", unknown, calls, most)
		}
		p.Thaw()
		answered(t, drv, 1)
	})
}
