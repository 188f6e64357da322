package redigo_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func evalMany(ctx context.Context, drv driver.Driver, calls ...driver.Call) []driver.Result {
	return drv.(driver.Batcher).EvalMany(ctx, calls)
}

func wantInt(t *testing.T, r driver.Result, want int64) {
	t.Helper()
	if n, err := r.Reply.Int(0); r.Err != nil || err != nil || n != want {
		t.Errorf("result %d, %v, %v; want %d", n, r.Err, err, want)
	}
}

func TestEvalMany(t *testing.T) {
	t.Parallel()
	eachPool(t, func(t *testing.T, pools poolKind) {
		m := miniredis.RunT(t)
		proxy := faultproxy.Start(t, m.Addr())
		drv := open(t, pools.make(proxy.Addr()))
		if got := evalMany(t.Context(), drv); len(got) != 0 {
			t.Errorf("of no calls: %v", got)
		}
		must(t, m.Set("text", "v"))
		sum := driver.NewScript(`return ARGV[1] + ARGV[2]`)
		odd := driver.NewScript(`return {{1}}`)
		_, err := drv.Eval(t.Context(), incr, []string{"n"}, nil) // known from now on
		must(t, err)
		for round := range int64(2) {
			results := evalMany(t.Context(), drv,
				driver.Call{Script: incr, Keys: []string{"n"}},
				driver.Call{Script: incr, Keys: []string{"text"}},
				driver.Call{Script: sum, Args: []string{"40", "2"}},
				driver.Call{Script: odd},
				driver.Call{Script: incr, Keys: []string{"n"}},
			)
			wantInt(t, results[0], 2+2*round)
			wantServerError(t, results[1].Err, "ERR ")
			wantInt(t, results[2], 42)
			if err := results[3].Err; err == nil || driver.NotExecuted(err) {
				t.Errorf("a nested list: %v", err)
			}
			wantInt(t, results[4], 3+2*round)
		}
		if n := proxy.Count(faultproxy.Command("EVAL")); n != 3 {
			t.Errorf("%d EVAL, want one for each script", n)
		}
	})
}

// One reply is lost in the middle. What was answered before stands, the rest is open and is not
// sent again.
func TestEvalManyLosesItsConnection(t *testing.T) {
	t.Parallel()
	eachPool(t, func(t *testing.T, pools poolKind) {
		m := miniredis.RunT(t)
		proxy := faultproxy.Start(t, m.Addr())
		pool := pools.make(proxy.Addr())
		drv := open(t, pool)
		unknown := driver.NewScript(`return redis.call("INCR", KEYS[1])+0`)
		calls := []driver.Call{{Script: unknown, Keys: []string{"k0"}}}
		for i := 1; i < 6; i++ {
			calls = append(calls, driver.Call{Script: incr, Keys: []string{fmt.Sprint("k", i)}})
		}
		_, err := drv.Eval(t.Context(), incr, []string{"warm"}, nil)
		must(t, err)
		proxy.Add(faultproxy.Rule{Match: faultproxy.Contains("k3"), Fault: faultproxy.Cut})
		results := evalMany(t.Context(), drv, calls...)
		wantServerError(t, results[0].Err, "NOSCRIPT ")
		wantInt(t, results[1], 1)
		wantInt(t, results[2], 1)
		for _, r := range results[3:] {
			if r.Err == nil || driver.NotExecuted(r.Err) || driver.CodeOf(r.Err) != "" {
				t.Errorf("error %v, want an unknown outcome", r.Err)
			}
		}
		for i := range calls {
			n := proxy.Count(faultproxy.Contains(fmt.Sprint("k", i)))
			if n > 1 || n == 0 && i <= 3 { // what came behind k3 may not be read any more
				t.Errorf("k%d was sent %d times", i, n)
			}
		}
		eventually(t, "connection dropped", func() bool { return pool.ActiveCount() == 0 })
	})
}

// Neither a reply that does not come nor requests that nobody reads hold the caller.
func TestEvalManyReturnsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	t.Run("no reply", func(t *testing.T) {
		t.Parallel()
		eachEnding(t, func(t *testing.T, pools poolKind, begin func(*testing.T) ending) {
			proxy := faultproxy.Start(t, miniredis.RunT(t).Addr())
			pool := pools.make(proxy.Addr())
			drv := open(t, pool)
			_, err := drv.Eval(t.Context(), incr, []string{"n"}, nil)
			must(t, err)
			trap := proxy.Add(faultproxy.Rule{Match: faultproxy.Contains("slow"), Fault: faultproxy.Stall})
			answered := make(chan []driver.Result, 1)
			end := begin(t)
			defer end.cancel()
			go func() {
				answered <- evalMany(end.ctx, drv, driver.Call{Script: incr, Keys: []string{"slow"}}, driver.Call{Script: incr, Keys: []string{"n"}})
			}()
			within(t, "stall", trap.Hit())
			end.cancel()
			for _, r := range manyReturned(t, answered) {
				wantOpen(t, r.Err, end.want)
			}
			trap.Release()
			eventually(t, "connection given back", func() bool { return pool.ActiveCount() == pool.IdleCount() })
		})
	})
	t.Run("no reader", func(t *testing.T) {
		t.Parallel()
		eachPool(t, func(t *testing.T, pools poolKind) {
			drv := open(t, pools.make(readsOnce(t)))
			_, err := drv.SetNX(t.Context(), "warm", "v", time.Minute)
			must(t, err)
			calls := make([]driver.Call, 16)
			for i := range calls {
				calls[i] = driver.Call{Script: incr, Args: []string{strings.Repeat("x", 1<<20)}}
			}
			answered := make(chan []driver.Result, 1)
			go func() { answered <- evalMany(bound(t, context.Background(), soon), drv, calls...) }()
			for _, r := range manyReturned(t, answered) {
				wantOpen(t, r.Err, context.DeadlineExceeded)
			}
		})
	})
}

func manyReturned(t *testing.T, answered <-chan []driver.Result) []driver.Result {
	t.Helper()
	select {
	case results := <-answered:
		return results
	case <-time.After(patience):
		t.Fatalf("EvalMany did not return within %v", patience)
		return nil
	}
}

// A server that stops reading while nobody reads its replies: a pipe has no buffer that would hide
// a deadlock.
func TestEvalManyReadsWhileItWrites(t *testing.T) {
	t.Parallel()
	m := miniredis.NewMiniRedis()
	t.Cleanup(m.Close)
	pipe := func(context.Context, string, string) (net.Conn, error) { return m.Dial() }
	drv := open(t, clients.RedigoPool("pipe", redis.DialContextFunc(pipe)))
	calls := make([]driver.Call, 200)
	for i := range calls {
		calls[i] = driver.Call{Script: incr, Keys: []string{fmt.Sprint("k", i%100)}, Args: []string{strings.Repeat("x", 500)}}
	}
	for i, r := range evalMany(bound(t, t.Context(), patience), drv, calls...) {
		wantInt(t, r, int64(1+i/100))
	}
}

func TestEvalManyKeepsNoSlice(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, miniredis.RunT(t).Addr())
	drv := open(t, poolKinds[1].make(proxy.Addr()))
	_, err := drv.Eval(t.Context(), incr, []string{"n"}, nil)
	must(t, err)
	trap := proxy.Add(faultproxy.Rule{Match: faultproxy.Contains("first"), Fault: faultproxy.Stall})
	calls := []driver.Call{{Script: incr, Keys: []string{"first"}}, {Script: driver.NewScript("return 1"), Keys: []string{"second"}}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-trap.Hit()
		cancel()
	}()
	for _, r := range evalMany(ctx, drv, calls...) {
		if !errors.Is(r.Err, context.Canceled) {
			t.Errorf("error %v", r.Err)
		}
	}
	calls[0].Keys[0], calls[1] = "", driver.Call{} // a race, if what finishes behind still looks
}
