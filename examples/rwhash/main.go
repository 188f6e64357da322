// Rwhash: pages read a catalogue together, and an import writes it alone. The client is redigo.
//
//	go run ./examples/rwhash                              an embedded server: nothing but Go is needed
//	go run ./examples/rwhash -redis redis://host:6379     the same on a real server
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/providers/redigo"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

func main() {
	url := flag.String("redis", "", "`URL` of a server, redis://[user:password@]host:port[/db]; empty: an embedded one")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "rwhash: takes no arguments; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *url)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rwhash:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string) error {
	if url == "" {
		server, err := miniredis.Run()
		if err != nil {
			return err
		}
		defer server.Close()
		server.ClockTTL(true) // without it, keys do not expire by themselves
		url = "redis://" + server.Addr()
	}
	pool := &redis.Pool{
		MaxIdle: 4, // 0, the default, dials for each command
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialURLContext(ctx, url, redis.DialConnectTimeout(3*time.Second))
		},
	}
	defer pool.Close()
	conn, err := pool.GetContext(ctx) // fail here if the server cannot be used
	if err != nil {
		return err
	}
	_ = conn.Close() // back into the pool
	drv, err := redigo.New(pool)
	if err != nil {
		return err
	}
	defer drv.Close()
	l, err := rwhash.New(drv, rwhash.Config{Prefix: "example:"})
	if err != nil {
		return err
	}
	return publish(ctx, l)
}

func publish(ctx context.Context, l locker.Locker) error {
	one, err1 := try(ctx, l, "page one", locker.Shared)
	two, err2 := try(ctx, l, "page two", locker.Shared)
	imports, err3 := wait(ctx, l, "import")
	// While the import waits, no further reader gets in before it.
	_, err4 := try(ctx, l, "page three", locker.Shared)
	if err := errors.Join(err1, err2, err3, err4, one.Release(ctx), two.Release(ctx)); err != nil {
		return err
	}

	write := <-imports
	if write == nil {
		return ctx.Err()
	}
	_, err1 = try(ctx, l, "page one", locker.Shared)
	// The writer checks its data: others may read with it, and nobody writes in between.
	err2 = write.Downgrade(ctx)
	fmt.Println("import goes on,", write.Mode())
	one, err3 = try(ctx, l, "page one", locker.Shared)
	return errors.Join(err1, err2, err3, one.Release(ctx), write.Release(ctx))
}

// wait acquires the lock alone, in the background. It returns when the request waits at the server.
func wait(ctx context.Context, l locker.Locker, who string) (<-chan *locker.Lock, error) {
	retries, err := retry.New(retry.Config{})
	if err != nil {
		return nil, err
	}
	var first sync.Once
	waits, acquired := make(chan struct{}), make(chan *locker.Lock, 1)
	traced := locktrace.With(ctx, &locktrace.Trace{Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
		if info.Subscribed && info.For > time.Second { // with a place at the server it hardly polls
			first.Do(func() {
				fmt.Println(who, "waits")
				close(waits)
			})
		}
	}})
	go func() {
		lock, err := try(traced, locker.Chain(l, retries), who, locker.Exclusive)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		acquired <- lock
	}()
	select {
	case <-waits:
	case <-ctx.Done():
	}
	return acquired, ctx.Err()
}

// try acquires the lock, and prints how it went. It returns nil if the lock was refused.
func try(ctx context.Context, l locker.Locker, who string, mode locker.Mode) (*locker.Lock, error) {
	lock, err := l.Acquire(ctx, locker.Request{Name: "catalogue", Owner: who, Mode: mode, TTL: 30 * time.Second})
	switch {
	case err == nil:
		fmt.Println(who, "holds,", mode)
	case errors.Is(err, locker.ErrNotAcquired): // an outage is another error
		fmt.Println(who, "is refused")
		return nil, nil
	}
	return lock, err
}
