package rueidis_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// load is a number of goroutines that send one command after the other, each bounded by timeout.
type load struct {
	drv     driver.Driver
	workers int
	timeout time.Duration
	ok      atomic.Int64
}

func (l *load) start(t *testing.T) {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop); wg.Wait() })
	for i := range l.workers {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				ctx := driver.Bound(context.Background(), l.timeout)
				if _, err := l.drv.Eval(ctx, increment, []string{fmt.Sprint("load", i)}, nil); err == nil {
					l.ok.Add(1)
				}
				ctx.Stop()
			}
		})
	}
}

// rate counts the commands that are answered in a quarter of a second.
func (l *load) rate() int64 {
	before := l.ok.Load()
	<-time.After(time.Second / 4)
	return l.ok.Load() - before
}

// best is the best of a few rates.
func (l *load) best() (best int64) {
	for range 4 {
		best = max(best, l.rate())
	}
	return best
}

// recovers fails the test unless the rate is half of before within six seconds.
func (l *load) recovers(t *testing.T, before int64) {
	t.Helper()
	best := int64(0)
	for end := time.Now().Add(6 * time.Second); 2*best < before; {
		if best = max(best, l.rate()); time.Now().After(end) {
			t.Fatalf("%d commands in 250 ms before, at most %d in six seconds after", before, best)
		}
	}
}

// A server with a round trip of 10 ms hangs, and many callers lose their patience. As soon as it
// goes on, all commands go over the shared connections again, and not one by one.
func TestFrozenServerGoesOn(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Options{})
	p := faultproxy.Start(t, srv.Addr())
	p.Latency(10 * time.Millisecond)
	l := &load{drv: dial(t, redis.ClientOption{InitAddress: []string{p.Addr()}, DisableCache: true}), workers: 256, timeout: 300 * time.Millisecond}
	l.start(t)
	before := l.best()
	if err := srv.Freeze(); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second) // after three timeouts each
	if err := srv.Thaw(); err != nil {
		t.Fatal(err)
	}
	l.recovers(t, before)
}

// One caller whose deadline is shorter than a round trip says nothing of the connection.
func TestHopelessDeadline(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Options{})
	p := faultproxy.Start(t, srv.Addr())
	p.Latency(10 * time.Millisecond)
	drv := dial(t, redis.ClientOption{InitAddress: []string{p.Addr()}, DisableCache: true})
	l := &load{drv: drv, workers: 256, timeout: patience}
	l.start(t)
	before := l.best()
	for _, parent := range []context.Context{context.Background(), t.Context()} {
		ctx := driver.Bound(parent, time.Millisecond)
		if _, err := drv.SetNX(ctx, "hopeless", "v", time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("SetNX within a millisecond: %v, want DeadlineExceeded", err)
		}
		ctx.Stop()
	}
	l.recovers(t, before)
}

// A dead connection does not say so, and acquires that get no answer have all but a few of the
// connections that take its place. What keeps or ends a hold passes them.
func TestUrgentPassesAcquires(t *testing.T) {
	t.Parallel()
	p := mini(t)
	opts := single(p.Addr())
	opts.ConnWriteTimeout, opts.PipelineMultiplex = forever, -1
	drv := dial(t, opts)
	t.Cleanup(p.CutAll)
	p.Add(faultproxy.Rule{Match: faultproxy.Contains("lost"), Fault: faultproxy.DropReply})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := drv.SetNX(ctx, "lost", "v", time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("SetNX whose reply is lost: %v, want DeadlineExceeded", err)
	}
	_, release := trapAt(t, []*faultproxy.Proxy{p}, faultproxy.Rule{Match: faultproxy.Contains("stalled"), Every: true, Fault: faultproxy.Stall})
	defer release()
	stalled, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for range 100 {
		wg.Go(func() { _, _ = drv.SetNX(stalled, "stalled", "v", time.Minute) })
	}
	acquire := func(key string) error {
		ctx := driver.Bound(context.Background(), soon)
		defer ctx.Stop()
		_, err := drv.SetNX(ctx, key, "v", time.Minute)
		return err
	}
	eventually(t, "an acquire that is not sent", func() bool { return errors.Is(acquire("acquire"), driver.ErrNotSent) })
	for i := range 20 {
		urgent := &driver.Bounded{Urgent: true}
		urgent.Start(context.Background(), patience)
		if _, err := drv.SetNX(urgent, fmt.Sprint("urgent", i), "v", time.Minute); err != nil {
			t.Errorf("an urgent call: %v", err)
		}
		urgent.Stop()
	}
	if err := acquire("acquire"); !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("an acquire behind others: %v, want ErrNotSent", err)
	}
}

// 1024 commands without an answer fill a connection, and the client does not look at ctx then.
func TestMoreCallsThanAConnectionTakes(t *testing.T) {
	t.Parallel()
	const calls, most = 3000, 1500
	p := mini(t)
	opts := single(p.Addr())
	opts.ConnWriteTimeout, opts.PipelineMultiplex = forever, -1
	drv := dial(t, opts)
	t.Cleanup(p.CutAll)
	for range 100 {
		if _, err := drv.SetNX(t.Context(), "k", "v", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	p.Freeze()
	errs := make(chan error, calls)
	for i := range calls {
		parent := t.Context()
		if i%2 == 0 {
			parent = context.Background()
		}
		go func() {
			ctx := driver.Bound(parent, 500*time.Millisecond)
			defer ctx.Stop()
			_, err := drv.SetNX(ctx, "k", "v", time.Minute)
			errs <- err
		}()
	}
	unknown := 0
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for i := range calls {
		select {
		case err := <-errs:
			switch {
			case errors.Is(err, driver.ErrNotSent):
			case errors.Is(err, context.DeadlineExceeded):
				unknown++
			default:
				t.Fatalf("SetNX at a frozen server: %v, want DeadlineExceeded or ErrNotSent", err)
			}
		case <-timer.C:
			t.Fatalf("%d of %d calls have not returned after %v", calls-i, calls, patience)
		}
	}
	if unknown > most {
		t.Errorf("%d of %d calls have an unknown outcome; want %d at most, the others wait unsent", unknown, calls, most)
	}
	p.Thaw()
	if _, err := drv.SetNX(t.Context(), "k2", "v", time.Minute); err != nil {
		t.Errorf("SetNX when the server goes on: %v", err)
	}
}
