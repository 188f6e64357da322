package bench

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rueidisclient "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// evals notes the scripts run by digest, and their arguments.
type evals struct {
	driver.Driver
	calls []evalCall
}

type evalCall struct {
	script     *driver.Script
	keys, args []string
}

func (e *evals) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	e.calls = append(e.calls, evalCall{s, slices.Clone(keys), slices.Clone(args)})
	return e.Driver.Eval(ctx, s, keys, args)
}

// BenchmarkRelease is the release script of strategies/single for a lock without waiters, beside
// one command for compare and delete: DELIFEQ of Valkey 9, or DELEX of Redis 8.4. The command does
// not look for waiters; pair is the command and ZCARD of the queue in one round trip; again is the
// script a second time, to show the noise. All are sent by the bare client, in turn, and only the
// release is timed. It prints the median of the batches of each in µs, the medians of the ratios to
// the script, and the server's own time per call. Other servers have neither command.
func BenchmarkRelease(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	ctx := context.Background()
	c := rueidisBare(b, server.Addr())
	var command []string // goes around the key
	for _, words := range [][]string{{"DELIFEQ"}, {"DELEX", "IFEQ"}} {
		if n, err := c.Do(ctx, c.B().Arbitrary("COMMAND", "INFO", words[0]).Build()).ToArray(); err == nil && len(n) == 1 && !n[0].IsNil() {
			command = words
		}
	}
	if command == nil {
		b.Skip("the server has neither DELIFEQ nor DELEX: set HOLDFAST_REDIS_SERVER")
	}
	release, value := releaseCall(b, c, server.Addr())
	deletes := func(key string) rueidisclient.Completed {
		return c.B().Arbitrary(command[0]).Keys(key).Args(command[1:]...).Args(value).Build()
	}
	script := func(key string) error {
		cmd := c.B().Evalsha().Sha1(release.script.Digest()).Numkeys(2).Key(key, "{"+key+"}:waiters").Arg(release.args...).Build()
		return want(2, c.Do(ctx, cmd))
	}
	variants := []struct {
		name string
		send func(key string) error
	}{
		{"script", script},
		{"again", script},
		{"command", func(key string) error { return want(1, c.Do(ctx, deletes(key))) }},
		{"pair", func(key string) error {
			replies := c.DoMulti(ctx, deletes(key), c.B().Zcard().Key("{"+key+"}:waiters").Build())
			if err := want(1, replies[0]); err != nil {
				return err
			}
			return want(0, replies[1])
		}},
	}
	for _, goroutines := range []int{1, 16} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			measure := func(send func(string) error) float64 {
				var spent atomic.Int64
				var wg sync.WaitGroup
				for g := range goroutines {
					key := "released" + strconv.Itoa(g)
					wg.Go(func() {
						for range batch {
							if err := c.Do(ctx, c.B().Set().Key(key).Value(value).Px(ttl).Build()).Error(); err != nil {
								b.Error(err)
								return
							}
							start := time.Now()
							err := send(key)
							spent.Add(int64(time.Since(start)))
							if err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				return float64(spent.Load()) / float64(goroutines*batch) / 1e3
			}
			server.MustCommand(b, "CONFIG", "RESETSTAT")
			times, ratios := make([][]float64, len(variants)), make([][]float64, len(variants))
			b.ResetTimer()
			for round := 0; round*batch < b.N || round < 3; round++ {
				took := make([]float64, len(variants))
				for i := range variants {
					i = (i + round) % len(variants) // none always goes first
					took[i] = measure(variants[i].send)
				}
				for i, us := range took {
					times[i], ratios[i] = append(times[i], us), append(ratios[i], us/took[0])
				}
			}
			b.StopTimer()
			b.ReportMetric(0, "ns/op") // of all together: of no use
			same := func(v float64) float64 { return v }
			for i, v := range variants {
				b.ReportMetric(median(times[i], same), v.name+"-us")
				if i > 0 {
					b.ReportMetric(median(ratios[i], same), v.name+"-ratio")
				}
			}
			stats := fmt.Sprint(server.MustCommand(b, "INFO", "commandstats"))
			for _, m := range regexp.MustCompile(`cmdstat_(evalsha|delifeq|delex|zcard):.*usec_per_call=([0-9.]+)`).FindAllStringSubmatch(stats, -1) {
				us := locker.Must(strconv.ParseFloat(m[2], 64))
				b.ReportMetric(us, "server-"+m[1]+"-us")
			}
		})
	}
}

// releaseCall returns strategies/single's script and arguments of a release, and the stored value.
// The server knows the script.
func releaseCall(b *testing.B, c rueidisclient.Client, addr string) (release evalCall, value string) {
	b.Helper()
	drv, _ := openRueidis(b, addr)
	recorded := &evals{Driver: drv}
	lock := locker.Must(locker.Must(single.New(recorded, single.Config{})).Acquire(b.Context(), locker.Request{Name: "recorded"}))
	value = locker.Must(c.Do(context.Background(), c.B().Get().Key("recorded").Build()).ToString())
	check.Must(b, lock.Release(b.Context()))
	_ = drv.Close()
	release = recorded.calls[len(recorded.calls)-1]
	if len(release.keys) != 2 || release.args[0] != value {
		b.Fatalf("the last script was run on %q with %q", release.keys, release.args)
	}
	return release, value
}

// want is an error unless the reply is the number n.
func want(n int64, reply rueidisclient.RedisResult) error {
	got, err := reply.AsInt64()
	if err == nil && got != n {
		err = fmt.Errorf("the server answered %d, not %d", got, n)
	}
	return err
}
