// Worker works under a lock, in turn with the other replicas of its deployment, and ends well on
// SIGTERM. deployment.yaml beside it has the settings for Kubernetes.
//
//	go run -C examples/recipes ./worker                          an embedded server: nothing but Go is needed
//	go run -C examples/recipes ./worker -redis redis://host:6379     a real server; or set REDIS_URL
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// releaseTimeout is how long a release waits for its answer. After that it goes on in the
// background for as long as the process lives.
const releaseTimeout = 4 * time.Second

// pause is the time after a failed turn. Acquire waits through an outage, but errors that waiting
// does not fix, such as a wrong password, fail at once.
const pause = time.Second

type config struct {
	url     string        // of the server; "": an embedded one
	note    string        // shown to others while this process holds the lock
	listen  string        // address of the probes
	ttl     time.Duration // how long others wait after this process has died
	longest time.Duration // how long a piece of work takes at most
	usual   time.Duration // how long it takes here
}

func parse(args []string) (cfg config, err error) {
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.StringVar(&cfg.url, "redis", "", "`URL` of a server; better set REDIS_URL, which may have a password; empty: an embedded one")
	flags.StringVar(&cfg.note, "note", "", "name of this process, for others to see")
	flags.StringVar(&cfg.listen, "listen", "127.0.0.1:0", "`address` of the probes")
	flags.DurationVar(&cfg.ttl, "ttl", 15*time.Second, "TTL of the lock")
	flags.DurationVar(&cfg.longest, "longest", 30*time.Second, "how long a piece of work takes at most")
	flags.DurationVar(&cfg.usual, "usual", time.Second, "how long a piece of work takes")
	err = flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = errors.New("takes no arguments; see -help")
	}
	return cfg, err
}

func main() {
	cfg, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(2)
	}
	if cfg.url == "" {
		cfg.url = os.Getenv("REDIS_URL")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, cfg)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg config) error {
	if cfg.url == "" {
		server, err := miniredis.Run()
		if err != nil {
			return err
		}
		defer server.Close()
		server.ClockTTL(true) // without it, keys do not expire by themselves
		cfg.url = "redis://" + server.Addr()
	}
	logging.Disable() // go-redis would log to standard error
	opts, err := redis.ParseURL(cfg.url)
	if err != nil {
		return err
	}
	opts.ContextTimeoutEnabled = true
	client := redis.NewClient(opts)
	defer client.Close()
	drv, err := goredis.New(client)
	if err != nil {
		return err
	}
	defer drv.Close()
	strategy, err := single.New(drv, single.Config{ReleaseTimeout: releaseTimeout})
	if err != nil {
		return err
	}
	locks, err := holdfast.Wrap(strategy, holdfast.Config{})
	if err != nil {
		return err
	}
	stopProbes, err := probes(ctx, cfg.listen)
	if err != nil {
		return err
	}
	defer stopProbes()

	for n := 1; ctx.Err() == nil; n++ {
		if err := turn(ctx, locks, cfg, n); err != nil && ctx.Err() == nil {
			fmt.Println("turn", n, "failed:", err) // a lost lock or an outage: no reason to end
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	}
	return nil
}

// turn works once under the lock. The end of ctx by SIGTERM ends the wait for the lock, but not the
// work: it has the grace period.
func turn(ctx context.Context, locks locker.Locker, cfg config, n int) (err error) {
	lock, err := locks.Acquire(ctx, locker.Request{Name: "worker", TTL: cfg.ttl, Note: cfg.note, MaxWait: time.Hour})
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, lock.Release(ctx)) }()
	held, cancel := lock.Context(ctx) // it ends when the lock is lost
	defer cancel()
	held, cancel = context.WithTimeout(held, cfg.longest) // keeps the work within the grace period
	defer cancel()
	fmt.Println("works", n)
	select {
	case <-time.After(cfg.usual): // the work goes here
		fmt.Println("done", n)
		return nil
	case <-held.Done():
		return context.Cause(held)
	}
}

// probes serves /livez and /readyz. Neither asks for the lock or the server: a waiting worker is
// well, and an outage of the server is not fixed by a restart.
func probes(ctx context.Context, address string) (stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	fmt.Println("probes", listener.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ctx.Err() != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	return func() {
		_ = server.Close()
		<-served
	}, nil
}
