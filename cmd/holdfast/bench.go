package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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
		Args: cobra.NoArgs,
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
	cmd.Flags().DurationVar(&f.connect, "connect-timeout", 5*time.Second, "how long to try to reach the server at first")
	cmd.Flags().IntVar(&f.seconds, "seconds", 20, "how long it takes in all")
	cmd.Flags().IntVar(&f.goroutines, "goroutines", 16, "how many goroutines of one client take locks at once")
	return cmd
}

func (f *benchFlags) run(ctx context.Context, o *options) error {
	name, permits, err := parseStrategy(o.strategy, false)
	if err != nil {
		return err
	}
	b := bench{part: time.Duration(f.seconds) * time.Second / 3, permits: max(permits, 1), run: throwaway("holdfast-bench:") + ":"}
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
			if removeKeys(all[0], o.prefix+used) != nil {
				return // what remains expires
			}
		}
	}()

	b.progress = startProgress(ctx, 3*b.part)
	defer b.progress.stop()
	for _, phase := range []struct {
		title string
		run   func(context.Context) (measurement, error)
	}{
		{"1 goroutine", func(ctx context.Context) (measurement, error) { return b.free(ctx, 1) }},
		{fmt.Sprintf("%d goroutines", f.goroutines), func(ctx context.Context) (measurement, error) { return b.free(ctx, f.goroutines) }},
		{"hand-over", b.handOver},
	} {
		b.progress.begin(phase.title)
		m, err := phase.run(ctx)
		if err != nil {
			b.progress.stop()
			return runError(ctx, err)
		}
		b.progress.clear()
		m.Phase = phase.title
		if err := m.print(os.Stdout, f.asJSON); err != nil {
			return err
		}
	}
	return nil
}

// signalError is the cause of a run that a signal ended.
type signalError struct{ sig os.Signal }

func (e *signalError) Error() string { return e.sig.String() }

// untilSignal returns a copy of ctx that SIGINT or SIGTERM ends, with a signalError as its cause.
func untilSignal(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case sig := <-signals:
			signal.Stop(signals) // another one ends the program without clean-up
			cancel(&signalError{sig})
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// runError returns the error of a run: that of the signal that ended it, or err.
func runError(ctx context.Context, err error) error {
	if by, ok := errors.AsType[*signalError](context.Cause(ctx)); ok {
		return statusOnly(statusSignal + signalNumber(by.sig))
	}
	return withStatus(err)
}

// bench measures one strategy over two clients.
type bench struct {
	part    time.Duration // for each phase
	permits int
	run     string // what its names begin with
	clients [2]locker.Locker

	progress *progress
	names    map[string]bool // that were used
}

// request asks for a lock that no other program uses.
func (b *bench) request(name string) locker.Request {
	if b.names == nil {
		b.names = map[string]bool{}
	}
	b.names[b.run+name] = true
	return locker.Request{Name: b.run + name, TTL: throwawayTTL, MaxWait: answerTimeout, Note: "holdfast bench"}
}

// free acquires and releases locks that are free, in n goroutines of one client.
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
			for time.Now().Before(end) {
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

// handOver passes one lock to and fro between two clients.
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
	for turn := 1; time.Since(begin) < b.part; turn++ {
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

// waiter is a request that waits in the background.
type waiter struct {
	got        chan acquired
	subscribed chan bool
	by         locktrace.WakeReason // what woke it last; valid once got has a value
}

type acquired struct {
	lock *locker.Lock
	err  error
}

func startWaiter(ctx context.Context, l locker.Locker, req locker.Request) *waiter {
	w := &waiter{got: make(chan acquired, 1), subscribed: make(chan bool, 16)}
	ctx = locktrace.With(ctx, &locktrace.Trace{
		Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
			select {
			case w.subscribed <- info.Subscribed:
			default:
			}
		},
		Woken: func(_ context.Context, info locktrace.WokenInfo) { w.by = info.By },
	})
	go func() {
		lock, err := l.Acquire(ctx, req)
		w.got <- acquired{lock, err}
	}()
	return w
}

// awaitSubscription waits until the waiter is subscribed to releases, or for patience. It is an
// error if the waiter does not wait any more.
func (w *waiter) awaitSubscription(patience time.Duration) (bool, error) {
	timeout := time.After(patience)
	for {
		select {
		case listens := <-w.subscribed:
			if listens {
				return true, nil
			}
		case <-timeout:
			return false, nil
		case r := <-w.got:
			if r.err == nil {
				_ = release(r.lock)
				r.err = errors.New("the server granted a lock twice")
			}
			return false, r.err
		}
	}
}

// measurement is what a phase measured. Times are in seconds.
type measurement struct {
	Phase      string   `json:"phase"`
	Goroutines int      `json:"goroutines"`
	Count      int      `json:"count"` // of locks acquired and released, or handed over
	PerSecond  float64  `json:"perSecond"`
	P50        float64  `json:"p50"`
	P90        float64  `json:"p90"`
	P99        float64  `json:"p99"`
	Max        float64  `json:"max"`
	Polled     int      `json:"polled,omitempty"` // hand-overs that no wake-up brought about
	Histogram  []bucket `json:"histogram"`
}

// bucket counts what took less than a time, and at least that of the bucket before.
type bucket struct {
	Below float64 `json:"below"`
	Count int     `json:"count"`
}

func newMeasurement(goroutines int, took []time.Duration, lasted time.Duration) measurement {
	m := measurement{Goroutines: goroutines, Count: len(took), PerSecond: float64(len(took)) / lasted.Seconds(), Histogram: []bucket{}}
	if len(took) == 0 {
		return m
	}
	slices.Sort(took)
	m.P50, m.P90, m.P99, m.Max = percentile(took, 50), percentile(took, 90), percentile(took, 99), percentile(took, 100)
	m.Histogram = histogram(took)
	return m
}

// percentile returns the time that p per cent of the sorted times do not exceed.
func percentile(sorted []time.Duration, p float64) float64 {
	i := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(i, 1)-1].Seconds()
}

// histogram counts the sorted times between the limits 1, 2, 5, 10, 20, 50 ... microseconds, from
// the first such bucket that has any to the last one.
func histogram(sorted []time.Duration) (all []bucket) {
	limit := time.Microsecond
	for i := 0; len(sorted) > 0; i++ {
		n, _ := slices.BinarySearch(sorted, limit)
		if n > 0 || all != nil {
			all = append(all, bucket{limit.Seconds(), n})
		}
		sorted = sorted[n:]
		if limit *= 2; i%3 == 1 {
			limit = limit / 4 * 5
		}
	}
	return all
}

// print prints a measurement, for people with a picture of its times.
func (m measurement) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, m)
	}
	var b strings.Builder
	what := "locks acquired and released"
	if m.Phase == "hand-over" {
		what = "locks passed between two clients"
	}
	fmt.Fprintf(&b, "%s: %d %s, %.0f per second\n", m.Phase, m.Count, what, m.PerSecond)
	fmt.Fprintf(&b, "  half within %.3g ms, 90 %% within %.3g ms, 99 %% within %.3g ms, the slowest in %.3g ms\n", 1e3*m.P50, 1e3*m.P90, 1e3*m.P99, 1e3*m.Max)
	if m.Polled > 0 {
		fmt.Fprintf(&b, "  %d were not woken by the release: see holdfast check\n", m.Polled)
	}
	most := 1
	for _, one := range m.Histogram {
		most = max(most, one.Count)
	}
	for _, one := range m.Histogram {
		bar := strings.Repeat("#", (one.Count*40+most-1)/most)
		fmt.Fprintf(&b, "  < %7g ms %9d %s\n", 1e3*one.Below, one.Count, bar)
	}
	_, err := io.WriteString(w, b.String())
	return printed(err)
}

// progress draws a bar at a terminal.
type progress struct {
	terminal bool // standard error is one
	began    time.Time
	all      time.Duration
	done     chan struct{}
	stopped  sync.WaitGroup
	once     sync.Once

	mu    sync.Mutex
	title string
	shown bool
}

// startProgress shows how much of a time has passed, if standard error is a terminal.
func startProgress(ctx context.Context, all time.Duration) *progress {
	p := &progress{
		terminal: term.IsTerminal(int(os.Stderr.Fd())), began: time.Now(), all: all, done: make(chan struct{}),
	}
	if !p.terminal {
		return p
	}
	p.stopped.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.draw()
			case <-p.done:
				return
			case <-ctx.Done():
				return
			}
		}
	})
	return p
}

func (p *progress) begin(title string) {
	p.mu.Lock()
	p.title = title
	p.mu.Unlock()
	if p.terminal {
		p.draw()
	}
}

const barWidth = 40

// bar returns a bar for a part of 1.
func bar(part float64) string {
	full := int(min(max(part, 0), 1) * barWidth)
	return strings.Repeat("#", full) + strings.Repeat(".", barWidth-full)
}

func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	fmt.Fprintf(os.Stderr, "\r\x1b[K[%s] %s", bar(float64(time.Since(p.began))/float64(p.all)), p.title)
}

// clear removes the bar, until it is drawn again.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	p.shown = false
}

// stop removes the bar for good.
func (p *progress) stop() {
	p.once.Do(func() {
		close(p.done)
		p.stopped.Wait()
		p.clear()
	})
}
