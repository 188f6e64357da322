package rueidis_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// A lone caller whose ctx cannot be cancelled never turns its connection to pipelining, which would
// make each of its commands take half as long again. The test counts the client's goroutines, so no
// other test may run meanwhile.
func TestLoneCallerIsNotPipelined(t *testing.T) { //nolint:paralleltest // see above
	srv := redistest.Start(t, redistest.Options{})
	drv := dial(t, redis.ClientOption{InitAddress: []string{srv.Addr()}, DisableCache: true})
	before := pipelining()
	for range 100 { // it is careful at first
		ctx := driver.Bound(context.Background(), patience)
		if _, err := drv.SetNX(ctx, "k", "v", time.Minute); err != nil {
			t.Fatal(err)
		}
		if _, err := drv.Eval(ctx, compare, []string{"k"}, []string{"v"}); err != nil {
			t.Fatal(err)
		}
		ctx.Stop()
	}
	if n := pipelining() - before; n > 0 {
		t.Errorf("%d connections are pipelined", n)
	}
}

// pipelining counts the goroutines that write to pipelined connections.
func pipelining() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "rueidis.(*pipe)._backgroundWrite(")
}

// The late answer to a lone caller's command is reported.
func TestLoneCallersLateAnswer(t *testing.T) {
	t.Parallel()
	for name, cancellable := range map[string]bool{"deadline": false, "cancellable": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t, redistest.Options{})
			drv := dial(t, redis.ClientOption{InitAddress: []string{srv.Addr()}, DisableCache: true, PipelineMultiplex: -1})
			parent := context.Background()
			if cancellable {
				parent = t.Context()
			}
			warm := driver.Bound(parent, patience)
			if _, err := drv.SetNX(warm, "warm", "v", time.Minute); err != nil {
				t.Fatal(err)
			}
			warm.Stop()
			if err := srv.Freeze(); err != nil {
				t.Fatal(err)
			}
			ctx := driver.Bound(parent, time.Second) // long enough to send it
			_, err := drv.SetNX(ctx, "k", "v", time.Minute)
			ctx.Stop()
			pending, ok := errors.AsType[*driver.PendingError](err)
			if !ok {
				t.Fatalf("SetNX at a frozen server: %v, want a PendingError", err)
			}
			answered := make(chan struct{})
			pending.OnAnswer(func(v any, err error) {
				defer close(answered)
				if v != true || err != nil {
					t.Errorf("the late answer is %v, %v; want true", v, err)
				}
			})
			if err := srv.Thaw(); err != nil {
				t.Fatal(err)
			}
			wait(t, "the late answer", answered)
		})
	}
}

// While the client connects again nothing was sent, and of what its callers have left nothing is
// sent later.
func TestNotSentWhileConnecting(t *testing.T) {
	t.Parallel()
	call := driver.Call{Script: increment, Keys: []string{"k"}}
	for op, send := range map[string]func(ctx context.Context, drv driver.Driver) error{
		"SetNX": func(ctx context.Context, drv driver.Driver) error {
			_, err := drv.SetNX(ctx, "k", "v", time.Minute)
			return err
		},
		"Eval": func(ctx context.Context, drv driver.Driver) error {
			_, err := drv.Eval(ctx, call.Script, call.Keys, nil)
			return err
		},
		"EvalMany": func(ctx context.Context, drv driver.Driver) error {
			return drv.(driver.Batcher).EvalMany(ctx, []driver.Call{call, call})[1].Err
		},
	} {
		for name, cancellable := range map[string]bool{"deadline": false, "cancellable": true} {
			t.Run(op+"/"+name, func(t *testing.T) {
				t.Parallel()
				srv := redistest.Start(t, redistest.Options{})
				p := faultproxy.Start(t, srv.Addr())
				drv := dial(t, redis.ClientOption{InitAddress: []string{p.Addr()}, DisableCache: true, PipelineMultiplex: -1})
				p.Freeze() // it accepts connections and says nothing
				p.CutAll()
				parent := context.Background()
				if cancellable {
					parent = t.Context()
				}
				var err error
				for range 2 { // the first may still find the connection that was cut
					ctx := driver.Bound(parent, 50*time.Millisecond)
					err = send(ctx, drv)
					ctx.Stop()
					if errors.Is(err, context.DeadlineExceeded) {
						break
					}
				}
				if !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v, want ErrNotSent and DeadlineExceeded", err)
				}
				p.Thaw()
				ctx := driver.Bound(parent, patience)
				defer ctx.Stop()
				if set, err := drv.SetNX(ctx, "k", "v", time.Minute); !set || err != nil {
					t.Errorf("afterwards: %v, %v; want the key to be free", set, err)
				}
			})
		}
	}
}

// What becomes of a command whose caller leaves soon is always known at last, so that nothing has
// to be cleaned up by repetition: at once, or by the late answer. On a busy machine that may take
// longer than a command waits on a connection of its own.
func TestImpatientCallers(t *testing.T) {
	t.Parallel()
	const callers, calls, lag = 100, 20, time.Second
	srv := redistest.Start(t, redistest.Options{})
	p := faultproxy.Start(t, srv.Addr())
	drv := dial(t, redis.ClientOption{InitAddress: []string{p.Addr()}, DisableCache: true})
	for range 100 { // it is careful at first
		if _, err := drv.SetNX(t.Context(), "k", "v", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	p.Latency(5 * time.Millisecond)
	var wg, late sync.WaitGroup
	var known, unknown atomic.Int64
	for range callers {
		wg.Go(func() {
			for i := range calls {
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
				_, err := drv.SetNX(ctx, "k", "v", time.Minute)
				cancel()
				pending, ok := errors.AsType[*driver.PendingError](err)
				switch {
				case ok:
					late.Add(1)
					pending.OnAnswer(func(_ any, err error) {
						defer late.Done()
						if err == nil || driver.NotExecuted(err) {
							known.Add(1)
						} else if unknown.Add(1); time.Since(start) < lag {
							t.Errorf("late answer after %v: %v, want what became of the command", time.Since(start), err)
						}
					})
				case err != nil && !driver.NotExecuted(err):
					t.Errorf("SetNX: %v, want a PendingError or ErrNotSent", err)
				}
			}
		})
	}
	wg.Wait()
	within(t, "all late answers", late.Wait)
	if k, u := known.Load(), unknown.Load(); u > k {
		t.Errorf("of %d late answers, %d do not tell what became of the command", k+u, u)
	}
}
