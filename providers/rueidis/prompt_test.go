package rueidis_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// clientModes are the ways in which rueidis uses its connections.
var clientModes = map[string]func(*redis.ClientOption){
	"default":               func(*redis.ClientOption) {},
	"DisableRetry":          func(o *redis.ClientOption) { o.DisableRetry = true },
	"AlwaysPipelining":      func(o *redis.ClientOption) { o.AlwaysPipelining = true },
	"DisableAutoPipelining": func(o *redis.ClientOption) { o.DisableAutoPipelining = true },
	"one connection":        func(o *redis.ClientOption) { o.PipelineMultiplex = -1 },
}

const soon = 50 * time.Millisecond

// endings are contexts and how they end while a call waits for a silent server; end is nil where a
// deadline does it. The client's own timeouts are an hour away, so a call that returns at all has
// obeyed its context.
var endings = []struct {
	name string
	make func() (ctx context.Context, stop, end context.CancelFunc)
	want error
}{
	{"cancel", func() (context.Context, context.CancelFunc, context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background())
		return ctx, cancel, cancel
	}, context.Canceled},
	{"cancel long before the deadline", func() (context.Context, context.CancelFunc, context.CancelFunc) {
		ctx, cancel := context.WithTimeout(context.Background(), forever)
		return ctx, cancel, cancel
	}, context.Canceled},
	{"cancel what is bounded", func() (context.Context, context.CancelFunc, context.CancelFunc) {
		parent, cancel := context.WithCancel(context.Background())
		ctx := driver.Bound(parent, forever)
		return ctx, ctx.Stop, cancel
	}, context.Canceled},
	{"deadline", func() (context.Context, context.CancelFunc, context.CancelFunc) {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		return ctx, cancel, nil
	}, context.DeadlineExceeded},
	{"bound", func() (context.Context, context.CancelFunc, context.CancelFunc) {
		ctx := driver.Bound(context.Background(), soon)
		return ctx, ctx.Stop, nil
	}, context.DeadlineExceeded},
	{"bound of what may be cancelled", func() (context.Context, context.CancelFunc, context.CancelFunc) {
		parent, cancel := context.WithCancel(context.Background())
		ctx := driver.Bound(parent, soon)
		return ctx, func() { ctx.Stop(); cancel() }, nil
	}, context.DeadlineExceeded},
}

// eachMode runs test for each way in which rueidis uses its connections, and for a cluster, behind
// proxies.
func eachMode(t *testing.T, test func(t *testing.T, opts redis.ClientOption, proxies ...*faultproxy.Proxy)) {
	t.Helper()
	t.Parallel()
	for mode, set := range clientModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := mini(t)
			opts := single(p.Addr())
			set(&opts)
			test(t, opts, p)
		})
	}
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		proxies, c := proxiedCluster(t)
		test(t, redis.ClientOption{InitAddress: c.Addrs()}, proxies...)
	})
}

func TestPromptReturn(t *testing.T) { eachMode(t, testPromptReturn) }

func testPromptReturn(t *testing.T, opts redis.ClientOption, proxies ...*faultproxy.Proxy) {
	opts.ConnWriteTimeout, opts.Dialer.Timeout = forever, forever
	for _, workers := range []int{1, 16} {
		for _, before := range []int{0, 100} {
			for _, e := range endings {
				t.Run(fmt.Sprintf("%s, %d at once after %d", e.name, workers, before), func(t *testing.T) {
					drv := dial(t, opts)
					t.Cleanup(func() { // else the client's Close waits for silent servers
						for _, p := range proxies {
							p.CutAll()
						}
					})
					for range before {
						if _, err := drv.SetNX(t.Context(), "k", "v", time.Minute); err != nil {
							t.Fatal(err)
						}
					}
					hits, release := trapAt(t, proxies, faultproxy.Rule{Match: faultproxy.Contains(t.Name()), Every: true, Fault: faultproxy.Stall})
					defer release()
					ctx, stop, end := e.make()
					defer stop()
					errs := inParallel(ctx, drv, workers, t.Name())
					if end != nil {
						wait(t, "a command that the server answers", hits)
						end()
					}
					collect(t, errs, e.want)
				})
			}
		}
	}
}

// trapAt puts a rule to work at all proxies until release. On hits something comes once a proxy has
// disturbed a command.
func trapAt(
	t *testing.T, proxies []*faultproxy.Proxy, rule faultproxy.Rule,
) (hits <-chan struct{}, release func()) {
	t.Helper()
	some := make(chan struct{}, len(proxies))
	var traps []*faultproxy.Trap
	for _, p := range proxies {
		trap := p.Add(rule)
		traps = append(traps, trap)
		go func() {
			select {
			case <-trap.Hit():
				some <- struct{}{}
			case <-t.Context().Done():
			}
		}()
	}
	return some, func() {
		for _, trap := range traps {
			trap.Release()
		}
	}
}

// inParallel makes one call about key from each of several goroutines. The channel is closed when
// all have returned.
func inParallel(ctx context.Context, drv driver.Driver, workers int, key string) <-chan error {
	errs := make(chan error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			var err error
			switch i % 3 {
			case 0:
				_, err = drv.SetNX(ctx, key, "v", time.Minute)
			case 1:
				_, err = drv.Eval(ctx, compare, []string{key}, []string{"v"})
			case 2:
				err = drv.(driver.Batcher).EvalMany(ctx, []driver.Call{{Script: compare, Keys: []string{key}, Args: []string{"v"}}})[0].Err
			}
			errs <- err
		})
	}
	go func() {
		wg.Wait()
		close(errs)
	}()
	return errs
}

// collect fails the test unless all calls return, and return want.
func collect(t *testing.T, errs <-chan error, want error) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case err, more := <-errs:
			if !more {
				return
			}
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		case <-timer.C:
			t.Fatalf("calls have not returned after %v", patience)
		}
	}
}

// A server that accepts connections and is silent: the client does not look at ctx while it
// introduces itself, and other calls wait for the same connection.
func TestPromptReturnWhileDialing(t *testing.T) {
	t.Parallel()
	before := map[string]func(*testing.T, *redis.ClientOption, *faultproxy.Proxy) driver.Driver{
		"at first": func(t *testing.T, opts *redis.ClientOption, p *faultproxy.Proxy) driver.Driver {
			opts.PipelineMultiplex = 2 // four connections, of which NewClient makes one
			return dial(t, *opts)
		},
		"after a break": func(t *testing.T, opts *redis.ClientOption, p *faultproxy.Proxy) driver.Driver {
			opts.PipelineMultiplex = -1
			drv := dial(t, *opts)
			for range 100 {
				if _, err := drv.SetNX(t.Context(), "k", "v", time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			p.Add(faultproxy.Rule{Match: faultproxy.Contains("broken"), Fault: faultproxy.Cut})
			if _, err := drv.SetNX(t.Context(), "broken", "v", time.Minute); err == nil {
				t.Fatal("SetNX on a connection that is cut: no error")
			}
			eventually(t, "the end of the only connection", func() bool { return p.Conns() == 0 })
			return drv
		},
	}
	for name, connect := range before {
		for _, e := range endings {
			t.Run(e.name+", "+name, func(t *testing.T) {
				t.Parallel()
				p := mini(t)
				opts := single(p.Addr())
				opts.ConnWriteTimeout, opts.Dialer.Timeout = forever, forever
				drv := connect(t, &opts, p)
				t.Cleanup(p.CutAll)
				p.Freeze()
				dialed := p.Conns()
				ctx, stop, end := e.make()
				defer stop()
				errs := inParallel(ctx, drv, 64, "k")
				if end != nil {
					eventually(t, "a new connection", func() bool { return p.Conns() > dialed })
					end()
				}
				collect(t, errs, e.want)
			})
		}
	}
}

// A connection that is dead and does not say so: what is sent on it gets no answer, and the
// client's ping is an hour away.
func TestDeadConnection(t *testing.T) { eachMode(t, testDeadConnection) }

func testDeadConnection(t *testing.T, opts redis.ClientOption, proxies ...*faultproxy.Proxy) {
	opts.ConnWriteTimeout, opts.Dialer.Timeout = forever, forever
	drv := dial(t, opts)
	t.Cleanup(func() {
		for _, p := range proxies {
			p.CutAll()
		}
	})
	for i := range 100 { // over all connections
		if _, err := drv.SetNX(t.Context(), fmt.Sprint("k", i), "v", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	conns := 0
	for _, p := range proxies {
		conns += p.Conns()
	}
	lost, release := trapAt(t, proxies, faultproxy.Rule{Match: faultproxy.Command("SET", "lost"), Fault: faultproxy.DropReply})
	defer release()
	cancellable, cancel := context.WithTimeout(t.Context(), time.Second) // long enough to send it
	defer cancel()
	if _, err := drv.SetNX(cancellable, "lost", "v", time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("SetNX whose reply is lost: %v, want DeadlineExceeded", err)
	}
	wait(t, "the lost reply", lost)
	later, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for _, ctx := range []context.Context{driver.Bound(context.Background(), patience), later} {
		collect(t, inParallel(ctx, drv, 64, "lost"), nil)
	}
	for _, p := range proxies {
		conns -= p.Conns()
	}
	if conns < -16 {
		t.Errorf("%d connections were added; want 16 at most", -conns)
	}
}
