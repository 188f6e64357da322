package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/logging"
	"github.com/holdfast-go/holdfast/reliability/history"
	"github.com/holdfast-go/holdfast/reliability/workload"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// workerVariable in the environment makes a process a worker.
const workerVariable = "HOLDFAST_TORTURE_WORKER"

// workerReady is a worker's first line.
const workerReady = "ready\n"

// worker runs many clients. It says that it is ready, reads its task from in, and writes each event to out at
// once, as a line of JSON, since it may be killed. It ends when the task's time is over. Each
// further line of in has a trouble and its duration. If in ends earlier, the parent has ended, and
// the worker ends too.
func worker(in io.Reader, out io.Writer) error {
	if _, err := io.WriteString(out, workerReady); err != nil {
		return err
	}
	lines := bufio.NewReader(in)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var t task
	if err := json.Unmarshal(first, &t); err != nil {
		return err
	}
	epoch, err := bootEpoch()
	if err != nil {
		return err
	}
	w := &work{task: t, tell: teller(out), bystanders: map[string]locker.Locker{}, cohorts: map[string]locker.Locker{}}
	w.rec = history.NewRecorder(epoch, w.tell)
	go w.obey(lines)
	return w.run()
}

type work struct {
	task
	rec   *history.Recorder
	tell  func(history.Event)
	hurry workload.Episode // impatient clients work
	dies  workload.Episode // a wake-up kills the process
	halts workload.Episode // a wake-up stops the process, once
	log   pipe
	// Shared by the clients of the process.
	watch, logged locker.Middleware
	lines         *slog.Logger
	bystanders    map[string]locker.Locker // by strategy and provider; each renews its locks together
	cohorts       map[string]locker.Locker // by group
}

// The troubles a worker process can cause.
const (
	starving = "starve" // all processors are busy
	hurrying = "hurry"  // impatient clients work
	clogging = "clog"   // the log blocks
	dying    = "die"    // the process kills itself when a release wakes one of its waiters
	halting  = "halt"   // the process stops itself then, and waits for SIGCONT
)

// obey causes the trouble named by each line.
func (w *work) obey(lines *bufio.Reader) {
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			os.Exit(3) // the parent has ended
		}
		trouble, lasting, _ := strings.Cut(strings.TrimSpace(line), " ")
		d, err := time.ParseDuration(lasting)
		if err != nil {
			continue
		}
		switch trouble {
		case starving:
			starve(d)
		case hurrying:
			w.hurry.Extend(d)
		case clogging:
			w.log.full.Extend(d)
		case dying:
			w.dies.Extend(d)
		case halting:
			w.halts.Extend(d)
		}
	}
}

// woken is called at each wake-up of a waiter, before it tries.
func (w *work) woken(_ context.Context, info locktrace.WokenInfo) {
	switch {
	case info.By != locktrace.ByRelease:
	case w.dies.On():
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case w.halts.End():
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
}

// starve keeps all processors busy with goroutines that never wait.
func starve(d time.Duration) {
	end := time.Now().Add(d)
	var wg sync.WaitGroup
	for range 8 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := 0; ; n++ {
				if n%100_000 == 0 && time.Now().After(end) {
					return
				}
			}
		})
	}
	wg.Wait()
}

// teller returns a function that writes an event.
func teller(out io.Writer) func(history.Event) {
	var mu sync.Mutex
	return func(e history.Event) {
		text, err := json.Marshal(e)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			_, err = out.Write(append(text, '\n'))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "torture: telling the parent:", err)
			os.Exit(3)
		}
	}
}

// pipe is a log's io.Writer. While it is full, writes block.
type pipe struct{ full workload.Episode }

// Write implements io.Writer.
func (p *pipe) Write(text []byte) (int, error) {
	p.full.Wait(func(d time.Duration) { pause(context.Background(), d) })
	return len(text), nil
}

func (w *work) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tb := &scope{}
	defer tb.end()
	drivers := w.dial(ctx, tb)
	if drivers == nil {
		return nil // it came too late
	}
	w.watch = locker.Must(watchdog.New(watchdog.Config{}))
	w.lines = slog.New(slog.NewTextHandler(&w.log, nil))
	w.logged = locker.Must(logging.New(logging.Config{Logger: w.lines, ContendedLevel: slog.LevelInfo}))
	var err error
	var wg sync.WaitGroup
	errs := make(chan error, clientsOf(w.Groups))
	number := w.First
	for _, g := range w.Groups {
		for range g.Clients {
			c := &client{work: w, group: g, number: number}
			c.source.Random = workload.Random{Rand: rand.New(rand.NewPCG(w.Seed, uint64(number)))}
			if err := c.open(drivers); err != nil {
				return err
			}
			number++
			wg.Go(func() { errs <- c.run(ctx) })
		}
	}
	wg.Wait()
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	for _, row := range drivers {
		for _, d := range row {
			err = errors.Join(err, serious(d.Close()))
		}
	}
	return err
}

// serious returns the error of a Close without ErrCleanUpUnfinished. On a starved machine the three
// seconds of a Close may be too few; the census finds the keys left.
func serious(err error) error {
	if err == driver.ErrCleanUpUnfinished { //nolint:errorlint // joined errors are looked at one by one
		return nil
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, one := range all.Unwrap() {
			rest = append(rest, serious(one))
		}
		return errors.Join(rest...)
	}
	return err
}

// dial opens a driver of each provider at each target. Servers may be down, so it tries until the
// end of the task, and then returns nil.
func (w *work) dial(ctx context.Context, tb *scope) [][]driver.Driver {
	drivers := make([][]driver.Driver, len(w.Targets))
	for i, addrs := range w.Targets {
		for _, c := range clients.All {
			target := drivertest.Target{Kind: w.Kind, Addrs: addrs, MasterName: w.Master}
			d, err := c.Dial(tb, target)
			for err != nil {
				if w.rec.Now() > w.End {
					return nil
				}
				pause(ctx, 20*time.Millisecond)
				d, err = c.Dial(tb, target)
			}
			drivers[i] = append(drivers[i], d)
		}
	}
	return drivers
}

// scope is the part of a testing.TB needed to dial.
type scope struct {
	testing.TB // nil: its other methods are not called
	cleanups   []func()
}

// Helper implements testing.TB.
func (*scope) Helper() {}

// Cleanup implements testing.TB.
func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}
