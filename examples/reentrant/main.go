// Reentrant: a transfer locks an account, and so does each booking that it is made of. The client
// is rueidis.
//
//	go run ./examples/reentrant                              an embedded server: nothing but Go is needed
//	go run ./examples/reentrant -redis redis://host:6379     the same on a real server
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/alicebob/miniredis/v2"
	client "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/rueidis"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

func main() {
	url := flag.String("redis", "", "`URL` of a server, redis://[user:password@]host:port[/db]; empty: an embedded one")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "reentrant: takes no arguments; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *url)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reentrant:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string) error {
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
	opts, err := client.ParseURL(url)
	if err != nil {
		return err
	}
	if embedded { // unknown to miniredis
		opts.DisableCache, opts.ForceSingleClient, opts.AlwaysRESP2 = true, true, true
	}
	c, err := client.NewClient(opts)
	if err != nil {
		return err
	}
	defer c.Close()
	drv, err := rueidis.New(c)
	if err != nil {
		return err
	}
	defer drv.Close()

	locks, err := reentrant.New(drv, reentrant.Config{})
	if err != nil {
		return err
	}
	b := &bank{locks}
	if err := b.book(ctx, "deposit"); err != nil {
		return err
	}
	return b.transfer(ctx)
}

var account = locker.Request{Name: "example:account", TTL: 30 * time.Second}

// bank books. Each of its methods takes its own locks, and may call the others.
type bank struct {
	locks *reentrant.Locker
}

// book is called alone and by transfer. The context from transfer carries the owner of its lock:
// book enters the same lock again.
func (b *bank) book(ctx context.Context, what string) error {
	return locker.Do(ctx, b.locks, account, func(ctx context.Context, _ *locker.Lock) error {
		state, err := b.locks.Inspect(ctx, account.Name)
		if err != nil {
			return err
		}
		fmt.Printf("%s, under %d hold(s)\n", what, state.Holds)
		return nil
	})
}

func (b *bank) transfer(ctx context.Context) error {
	return locker.Do(ctx, b.locks, account, func(inside context.Context, _ *locker.Lock) error {
		if err := b.book(inside, "debit"); err != nil {
			return err
		}
		// A caller with another owner is refused.
		if err := b.book(ctx, "theft"); !errors.Is(err, locker.ErrNotAcquired) {
			return fmt.Errorf("somebody else booked: %w", err)
		}
		fmt.Println("somebody else is refused")
		return b.book(inside, "fee")
	})
}
