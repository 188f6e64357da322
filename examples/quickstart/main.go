// Quickstart: three workers, each on a different Redis client, contend for one lock around a shared
// counter.
//
//	go run ./examples/quickstart                              an embedded server: nothing but Go is needed
//	go run ./examples/quickstart -redis redis://host:6379     the same on a real server
//
// It prints who waits for whom and how long, who holds, and the fencing tokens. It ends with exit
// status 0 if the total is right, and with 1 if it is not or the server cannot be used.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	redigoclient "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	rueidisclient "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/providers/redigo"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

const (
	lockName   = "quickstart:{counter}"
	counterKey = "quickstart:{counter}:value"
	thinking   = 20 * time.Millisecond // under the lock
	resting    = 10 * time.Millisecond // between rounds
)

func main() {
	url := flag.String("redis", "", "`URL` of a server, redis://[user:password@]host:port[/db]; empty: an embedded one")
	rounds := flag.Int("rounds", 4, "how often each worker locks, at least 1")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 {
		fmt.Fprintln(os.Stderr, "quickstart: takes no arguments, and -rounds of at least 1; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *url, *rounds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// run connects the three clients, each for a worker.
func run(ctx context.Context, url string, rounds int) error {
	embedded := url == ""
	if embedded {
		server, err := miniredis.Run()
		if err != nil {
			return err
		}
		defer server.Close()
		server.ClockTTL(true) // without it, keys do not expire by themselves
		url = "redis://" + server.Addr()
	}
	logging.Disable() // go-redis would log to standard error

	opts, err := redis.ParseURL(url)
	if err != nil {
		return fmt.Errorf("-redis takes redis://[user:password@]host:port[/db]: %w", err)
	}
	opts.ContextTimeoutEnabled = true // let calls end with their context
	goredisClient := redis.NewClient(opts)
	defer goredisClient.Close()
	if err := goredisClient.Ping(ctx).Err(); err != nil {
		return err
	}
	drv1, err := goredis.New(goredisClient)
	if err != nil {
		return err
	}
	defer drv1.Close()

	option, err := rueidisclient.ParseURL(url)
	if err != nil {
		return err
	}
	if embedded { // unknown to miniredis
		option.DisableCache, option.ForceSingleClient, option.AlwaysRESP2 = true, true, true
	}
	rueidisClient, err := rueidisclient.NewClient(option)
	if err != nil {
		return err
	}
	defer rueidisClient.Close()
	drv2, err := rueidis.New(rueidisClient)
	if err != nil {
		return err
	}
	defer drv2.Close()

	pool := &redigoclient.Pool{
		MaxIdle: 4, // 0, the default, dials for each command
		DialContext: func(ctx context.Context) (redigoclient.Conn, error) {
			return redigoclient.DialURLContext(ctx, url, redigoclient.DialConnectTimeout(3*time.Second))
		},
	}
	defer pool.Close()
	drv3, err := redigo.New(pool)
	if err != nil {
		return err
	}
	defer drv3.Close()

	fmt.Printf("server   %s\n", opts.Addr)
	fmt.Printf("lock     %q, around a counter that each worker reads, thinks about, and writes\n\n", lockName)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return count(ctx, counter{goredisClient}, rounds, map[string]driver.Driver{
		"go-redis": drv1, "rueidis": drv2, "redigo": drv3,
	})
}

// count lets the workers work and checks the total.
func count(ctx context.Context, shared counter, rounds int, drivers map[string]driver.Driver) error {
	before, err := shared.read(ctx)
	if err != nil {
		return err
	}
	log := &journal{start: time.Now()}
	var wg sync.WaitGroup
	errs := make(chan error, len(drivers))
	for name, drv := range drivers {
		w := &worker{name, locker.Must(holdfast.New(drv, holdfast.Config{})), shared, log}
		wg.Go(func() { errs <- w.work(ctx, rounds) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	after, err := shared.read(ctx)
	if err != nil {
		return err
	}
	got, want := after-before, rounds*len(drivers)
	fmt.Printf("\ntotal    %d rounds counted, %d made: ", got, want)
	if got != want {
		fmt.Println("WRONG")
		return fmt.Errorf("the counter rose by %d in %d rounds", got, want)
	}
	fmt.Printf("right. Longest wait %v.\n", log.longest.Round(time.Millisecond))
	return nil
}

// worker works through one of the clients.
type worker struct {
	name    string
	locker  locker.Locker
	counter counter
	log     *journal
}

// work takes the lock rounds times and counts up by one each time.
func (w *worker) work(ctx context.Context, rounds int) error {
	for round := range rounds {
		began := time.Now()
		req := locker.Request{
			Name: lockName, TTL: 30 * time.Second, Fenced: true, Owner: w.name, Note: fmt.Sprintf("round %d", round+1),
		}
		err := locker.Do(w.traced(ctx), w.locker, req, func(ctx context.Context, lock *locker.Lock) error {
			w.log.waited(w.name, lock.Fence(), time.Since(began))
			now, err := w.counter.read(ctx)
			if err != nil {
				return err
			}
			// Whoever else read the counter meanwhile would write the same number.
			if err := pause(ctx, thinking); err != nil {
				return err
			}
			if err := w.counter.write(ctx, now+1, lock.Fence()); err != nil {
				return err
			}
			w.log.printf(w.name, "counts", "%d -> %d", now, now+1)
			return nil
		})
		if err == nil {
			err = pause(ctx, resting)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// traced returns a context whose acquisitions are logged: each holder waited for, once.
func (w *worker) traced(ctx context.Context) context.Context {
	var last string
	return locktrace.With(ctx, &locktrace.Trace{
		Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
			if holder := holderOf(info.Err); holder != "" && holder != last {
				last = holder
				w.log.printf(w.name, "waits", "for %s", holder)
			}
		},
		Lost: func(_ context.Context, info locktrace.LostInfo) { w.log.printf(w.name, "LOST", "%v", info.Err) },
	})
}

// holderOf returns the holder of the lock, or "" if a refusal does not name one: the lock may have
// been released, and kept for the first waiter.
func holderOf(err error) string {
	held, ok := errors.AsType[*locker.ContentionError](err)
	if !ok || held.Owner == "" {
		return ""
	}
	return held.Owner + ", " + held.Note
}

// pause waits for d, or until ctx ends, as it does when the lock is lost.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// counter is the data under the lock: a hash with the value and the fencing token of its writer.
type counter struct{ client *redis.Client }

func (c counter) read(ctx context.Context) (int, error) {
	value, err := c.client.HGet(ctx, counterKey, "value").Int()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return value, err
}

// writeScript writes unless the holder of a later fencing token wrote before.
var writeScript = redis.NewScript(`
if tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) > tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'value', ARGV[1], 'fence', ARGV[2])
redis.call('PEXPIRE', KEYS[1], 3600000)
return 1`)

func (c counter) write(ctx context.Context, value int, fence int64) error {
	written, err := writeScript.Run(ctx, c.client, []string{counterKey}, value, fence).Bool()
	if err == nil && !written {
		return fmt.Errorf("fencing token %d is too old to write", fence)
	}
	return err
}

// journal prints events, a line at a time.
type journal struct {
	start time.Time

	mu      sync.Mutex
	longest time.Duration
}

func (j *journal) printf(worker, what, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Printf("%7.3fs  %-9s %-7s %s\n", time.Since(j.start).Seconds(), worker, what, fmt.Sprintf(format, args...))
}

func (j *journal) waited(worker string, fence int64, d time.Duration) {
	j.printf(worker, "holds", "fence %d, waited %v", fence, d.Round(100*time.Microsecond))
	j.mu.Lock()
	defer j.mu.Unlock()
	j.longest = max(j.longest, d)
}
