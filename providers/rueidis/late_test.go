package rueidis_test

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// A lone caller with an uncancellable ctx never turns its connection to pipelining, which would
// slow each of its commands by half. The test reads all stacks, so no other test may run meanwhile.
func TestLoneCallerIsNotPipelined(t *testing.T) { //nolint:paralleltest // see above
	clients.Bubble(t, func(t *testing.T) {
		m, p := clients.Proxied(t)
		drv := dial(t, single(m.Net.Dial, p.Addr()))
		before := pipelining()
		for range 100 { // it is careful at first
			ctx := bounded.New(context.Background(), forever)
			locker.Must(drv.SetNX(ctx, "k", "v", time.Minute))
			locker.Must(drv.Eval(ctx, compare, []string{"k"}, []string{"v"}))
			ctx.Stop()
		}
		if n := pipelining() - before; n > 0 {
			t.Errorf("%d connections are pipelined", n)
		}
		check.OK(t, check.ErrOf(drv.SetNX(t.Context(), "k", "v", time.Minute)))
		if n := pipelining() - before; n != 1 {
			t.Errorf("a cancellable ctx pipelines %d connections; want 1: rueidis may have renamed the goroutine that is counted", n)
		}
	})
}

// pipelining counts the goroutines of this bubble that write to pipelined connections.
func pipelining() (n int) {
	buffer := make([]byte, 1<<20)
	stacks := string(buffer[:runtime.Stack(buffer, true)]) // the first is this one
	bubble := regexp.MustCompile(`synctest bubble \d+\]`).FindString(stacks)
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		if strings.Contains(stack, bubble) && strings.Contains(stack, "rueidis.(*pipe)._backgroundWrite(") {
			n++
		}
	}
	return n
}

// parents are those of a bounded context, cancellable or not.
var parents = map[string]func(t *testing.T) context.Context{
	"deadline":    func(*testing.T) context.Context { return context.Background() },
	"cancellable": func(t *testing.T) context.Context { return t.Context() },
}

// While the client reconnects nothing is sent, nor are commands of departed callers sent later.
func TestNotSentWhileConnecting(t *testing.T) {
	t.Parallel()
	for i, op := range []string{"SetNX", "Eval"} {
		for name, parent := range parents {
			t.Run(op+"/"+name, func(t *testing.T) {
				t.Parallel()
				clients.Bubble(t, func(t *testing.T) {
					m, p := clients.Proxied(t)
					opts := login(m, single(m.Net.Dial, p.Addr()))
					opts.PipelineMultiplex = -1
					drv := dial(t, opts)
					p.Freeze() // it accepts connections and is silent
					p.CutAll()
					synctest.Wait()
					var err error
					for range 2 { // the first may find the cut connection
						ctx := bounded.New(parent(t), patience)
						err = operations[i](ctx, drv, "k")
						ctx.Stop()
						if errors.Is(err, context.DeadlineExceeded) {
							break
						}
					}
					if !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("error %v, want ErrNotSent and DeadlineExceeded", err)
					}
					p.Thaw()
					<-time.After(patience)
					if m.Exists("k") || p.Sent("k") > 0 {
						t.Errorf("%d commands were sent", p.Sent("k"))
					}
					answered(t, drv, 1)
				})
			})
		}
	}
}

// The outcome of a command whose caller leaves soon is always known in the end, at once or by the
// late answer: no clean-up is needed.
func TestImpatientCallers(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m, p := clients.Proxied(t)
		drv := dial(t, single(m.Net.Dial, p.Addr()))
		answered(t, drv, 100)
		p.Latency(5 * time.Millisecond)
		var wg sync.WaitGroup
		var late, known atomic.Int64
		for range 100 {
			wg.Go(func() {
				for i := range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
					_, err := drv.SetNX(ctx, "k", "v", time.Minute)
					cancel()
					pending, ok := errors.AsType[*driver.PendingError](err)
					switch {
					case ok:
						late.Add(1)
						pending.OnAnswer(func(_ any, err error) {
							if err == nil || driver.NotExecuted(err) {
								known.Add(1)
							} else {
								t.Errorf("late answer: %v, want what became of the command", err)
							}
						})
					case err != nil && !driver.NotExecuted(err):
						t.Errorf("SetNX: %v, want a PendingError or ErrNotSent", err)
					}
				}
			})
		}
		wg.Wait()
		<-time.After(time.Second)
		if late.Load() == 0 || known.Load() != late.Load() {
			t.Errorf("%d of %d late answers have come", known.Load(), late.Load())
		}
	})
}
