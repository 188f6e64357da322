package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	seconds    int
	goroutines int
	connect    time.Duration
	asJSON     bool
}

func newBench(o *options) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast this server grants locks and hands them over",
		Long: `Measure how fast this server grants locks that are free, to one goroutine and to several, and how
long after a release the next client has the lock. It uses names of its own, and leaves no key.

Exit status: 0, 128+n if signal n ended it, or 64, 69, 70 and 77 as of run.`,
		Args: takes(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.seconds < 1 || f.seconds > 3600 {
				return fmt.Errorf("--seconds %d: want 1 to 3600", f.seconds)
			}
			if f.goroutines < 2 || f.goroutines > 1000 {
				return fmt.Errorf("--goroutines %d: want 2 to 1000", f.goroutines)
			}
			if f.connect <= 0 {
				return fmt.Errorf("--connect-timeout %s: want more than 0", f.connect)
			}
			return f.run(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	jsonFlag(cmd, &f.asJSON)
	cmd.Flags().DurationVar(&f.connect, "connect-timeout", connectTimeout, "how long to try to reach the server at first")
	cmd.Flags().IntVar(&f.seconds, "seconds", 20, "how long it takes in all")
	cmd.Flags().IntVar(&f.goroutines, "goroutines", 16, "how many goroutines of one client take locks at once")
	return cmd
}

func (f *benchFlags) run(ctx context.Context, o *options) error {
	name, permits, err := parseStrategy(o.strategy, false)
	if err != nil {
		return err
	}
	b := bench{part: time.Duration(f.seconds) * time.Second / 3, permits: max(permits, 1), prefix: throwaway("holdfast-bench:") + ":"}
	var all []connection
	defer func() {
		for _, c := range all {
			c.close()
		}
	}()
	o.connectTimeout = f.connect
	for i := range b.clients { // each has a client of its own
		c, err := o.connect()
		if err != nil {
			return err
		}
		all = append(all, c)
		if b.clients[i], err = c.strategy(name, permits, o.prefix); err != nil {
			return err
		}
	}
	ctx, cancel := untilSignal(ctx)
	defer cancel(nil)
	first, err := acquire(ctx, b.clients[0], b.request("0"), f.connect, func(error) {})
	if err == nil {
		err = release(first)
	}
	if err != nil {
		return runError(ctx, err)
	}
	defer func() {
		for used := range b.names {
			if removeKeys(all[0], o.prefix+used, "") != nil {
				return // the rest expires
			}
		}
	}()

	if !f.asJSON {
		if _, err := fmt.Fprint(stdout, f.describe(o, name)); err != nil {
			return printed(err)
		}
	}
	title, began := "", time.Now()
	progress := startStatusLine(os.Stderr, func() string {
		return fmt.Sprintf("[%s] %s", bar(time.Since(began).Seconds()/(3*b.part).Seconds()), title)
	})
	defer progress.stop()
	for _, phase := range []struct {
		title string
		run   func(context.Context) (measurement, error)
	}{
		{"1 goroutine", func(ctx context.Context) (measurement, error) { return b.free(ctx, 1) }},
		{fmt.Sprintf("%d goroutines", f.goroutines), func(ctx context.Context) (measurement, error) { return b.free(ctx, f.goroutines) }},
		{"hand-over", b.handOver},
	} {
		progress.change(func() { title = phase.title })
		m, err := phase.run(ctx)
		if err != nil {
			return runError(ctx, err)
		}
		m.Phase = phase.title
		if err := progress.above(func() error { return m.print(stdout, f.asJSON) }); err != nil {
			return err
		}
	}
	return nil
}

// describe returns the heading of the output.
func (f *benchFlags) describe(o *options, strategy string) string {
	var addrs []string
	for _, s := range o.servers {
		addrs = append(addrs, s.label())
	}
	return fmt.Sprintf(`%s over %s at %s, for %d s:
how long it takes to acquire and release a free lock, in 1 goroutine and in %d of one client,
and how long after a release the client that waits has the lock (hand-over)

`, strategy, o.client, strings.Join(addrs, ", "), f.seconds, f.goroutines)
}

// bench measures one strategy over two clients.
type bench struct {
	part    time.Duration // for each phase
	permits int
	prefix  string // of its names
	clients [2]locker.Locker

	names map[string]bool // used; their keys are removed at the end
}

// request returns a request for a name of this run: no other program uses it.
func (b *bench) request(name string) locker.Request {
	if b.names == nil {
		b.names = map[string]bool{}
	}
	b.names[b.prefix+name] = true
	return locker.Request{Name: b.prefix + name, TTL: throwawayTTL, MaxWait: answerTimeout, Note: "holdfast bench"}
}

// free acquires and releases free locks, in n goroutines of one client.
func (b *bench) free(ctx context.Context, n int) (measurement, error) {
	reqs := make([]locker.Request, n)
	for i := range reqs {
		reqs[i] = b.request(fmt.Sprint(i))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var all []time.Duration
	begin := time.Now()
	end := begin.Add(b.part)
	var wg sync.WaitGroup
	for _, req := range reqs {
		wg.Go(func() {
			var took []time.Duration
			for len(took) == 0 || time.Now().Before(end) {
				at := time.Now()
				lock, err := b.clients[0].Acquire(ctx, req)
				if err == nil {
					err = release(lock)
				}
				if err != nil {
					cancel(err)
					return
				}
				took = append(took, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	wg.Wait()
	return newMeasurement(n, all, time.Since(begin)), context.Cause(ctx) // nil unless one failed
}

// release releases a lock, also if the run was interrupted.
func release(lock *locker.Lock) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	return lock.Release(ctx)
}

// handOver passes one lock back and forth between two clients.
func (b *bench) handOver(ctx context.Context) (measurement, error) {
	var waiters [2]locker.Locker
	for i, bare := range b.clients {
		l, err := holdfast.Wrap(bare, holdfast.Config{})
		if err != nil {
			return measurement{}, err
		}
		waiters[i] = l
	}
	req := b.request("handover")
	req.Permits = b.permits
	lock, err := waiters[0].Acquire(ctx, req)
	if err != nil {
		return measurement{}, err
	}
	var took []time.Duration
	polls := 0
	begin := time.Now()
	for turn := 1; turn == 1 || time.Since(begin) < b.part; turn++ {
		w := startWaiter(ctx, waiters[turn%2], req)
		if _, err := w.awaitSubscription(time.Second); err != nil {
			return measurement{}, errors.Join(err, release(lock))
		}
		at := time.Now()
		if err := release(lock); err != nil {
			return measurement{}, err
		}
		next := <-w.got
		if next.err != nil {
			return measurement{}, next.err
		}
		took = append(took, time.Since(at))
		if w.by != locktrace.ByRelease {
			polls++
		}
		lock = next.lock
	}
	m := newMeasurement(2, took, time.Since(begin))
	m.Polled = polls
	return m, release(lock)
}

const barWidth = 40

// bar returns a bar for a part of 1.
func bar(part float64) string {
	full := int(min(max(part, 0), 1) * barWidth)
	return strings.Repeat("#", full) + strings.Repeat(".", barWidth-full)
}
