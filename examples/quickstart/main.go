// Quickstart: three workers, each on a different Redis client, contend for one lock around a shared counter.
//
//	go run ./examples/quickstart                              an embedded server: nothing but Go is needed
//	go run ./examples/quickstart -redis redis://host:6379     the same on a real server
//
// It prints who waits for whom and how long, who holds, and the fencing tokens; and ends with exit status 0 if the total is
// right, 1 if it is not or the server cannot be used.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
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
	defer stop()
	if err := run(ctx, os.Stdout, *url, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", oneLine(err))
		os.Exit(1) //nolint:gocritic // nothing of what is deferred outlives the process
	}
}

// run lets the workers work and checks the total.
func run(ctx context.Context, out io.Writer, url string, rounds int) (err error) {
	server, err := clients.Open(url)
	if err != nil {
		return err
	}
	defer server.Close()
	all, err := clients.Dial(ctx, server)
	defer func() { err = errors.Join(err, all.Close()) }()
	if err != nil {
		return fmt.Errorf("cannot use %s: %w", server, err)
	}
	workers := make([]*worker, len(all))
	for i, c := range all {
		if workers[i], err = newWorker(c); err != nil {
			return err
		}
	}

	log := &journal{out: out, start: time.Now()}
	log.printf("server   %s\n", server)
	log.printf("lock     %q, around a counter that each worker reads, thinks about, and writes\n\n", lockName)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	start, err := workers[0].counter(ctx)
	if err != nil {
		return fmt.Errorf("cannot use %s: %w", server, err)
	}

	errs := make([]error, len(workers))
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() { errs[i] = w.work(ctx, log, rounds) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}

	end, err := workers[0].counter(ctx)
	if err != nil {
		return err
	}
	got, want := end-start, rounds*len(workers)
	log.printf("\ntotal    %d rounds counted, %d made: ", got, want)
	if got != want {
		log.printf("WRONG\n")
		return fmt.Errorf("the counter rose by %d in %d rounds: %w", got, want, locker.ErrLost)
	}
	log.printf("right. Longest wait %v.\n", log.longest().Round(time.Millisecond))
	return nil
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
