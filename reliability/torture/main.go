package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/reliability/history"
)

func main() {
	if os.Getenv(workerVariable) != "" {
		if err := worker(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "torture:", err)
			os.Exit(2)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := program(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(code)
}

// The exit statuses.
const (
	statusKept   = 0
	statusBroken = 1
	statusFailed = 2
)

// program is the program with these arguments; it returns the exit status.
func program(ctx context.Context, args []string, out io.Writer) int {
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.SetOutput(out)
	seconds := flags.Int("seconds", 60, "how long to run")
	seed := flags.Uint64("seed", 0, "of the rounds, the faults and the clients; 0: a random one")
	dir := flags.String("out", "", "folder for the histories of violations; default: a new one among temporary files")
	on := flags.String("on", "", "topologies, separated by commas, that take turns; default: all, in two strands at once")
	check := flags.String("check", "", "a history to check again, instead of a run")
	if err := flags.Parse(args); err != nil {
		return statusFailed
	}
	if *check != "" {
		return checkFile(*check, out)
	}
	strands := everywhere
	if *on != "" {
		strands = [][]string{strings.Split(*on, ",")}
		for _, topology := range strands[0] {
			if starters[topology] == nil {
				fmt.Fprintf(out, "torture: -on %q: want %v\n", topology, slices.Sorted(maps.Keys(starters)))
				return statusFailed
			}
		}
	}
	for *seed == 0 {
		*seed = rand.Uint64() >> 1 //nolint:gosec // no secret
	}
	r, err := newRun(out, *seed, *dir, strands)
	if err == nil {
		err = r.play(ctx, time.Duration(*seconds)*time.Second)
	}
	if err != nil {
		fmt.Fprintln(out, "torture:", err)
		return statusFailed
	}
	if r.judge.violations > 0 {
		return statusBroken
	}
	return statusKept
}

func checkFile(path string, out io.Writer) int {
	events, rules, err := history.Load(path)
	if err != nil {
		fmt.Fprintln(out, "torture:", err)
		return statusFailed
	}
	res := history.Check(events, rules, 0)
	fmt.Fprintf(out, "%s: %d operations, %s %s\n", res.Name, res.Operations, res.Verdict, res.Reason)
	if res.Verdict == history.Violation {
		return statusBroken
	}
	return statusKept
}

// run is one run of the program.
type run struct {
	out   io.Writer
	seed  uint64
	dir   string
	epoch time.Time
	store *storeServer
	judge *judge
	// strands are topologies that take turns; the strands run at once.
	strands [][]string
	// kinds are the strategies at a stage.
	kinds func(*stage) []string
}

var everywhere = [][]string{{"one server", "cluster"}, {"five masters", "sentinels"}}

func usualKinds(s *stage) []string {
	if s.topology == "five masters" {
		return []string{"redlock-single", "redlock-rwhash"}
	}
	return []string{"single", "reentrant", "rwhash"}
}

func newRun(out io.Writer, seed uint64, dir string, strands [][]string) (*run, error) {
	epoch, err := bootEpoch()
	if err != nil {
		return nil, err
	}
	if dir == "" {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("torture-%d", seed))
	}
	return &run{out: out, seed: seed, dir: dir, epoch: epoch, judge: newJudge(out, dir), strands: strands, kinds: usualKinds}, nil
}

// play plays rounds for a time.
func (r *run) play(ctx context.Context, length time.Duration) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tmp, err := os.MkdirTemp("", "torture-store-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if r.store, err = serveStore(tmp); err != nil {
		return err
	}
	defer r.store.close()
	start := time.Now()
	end := start.Add(length)
	fmt.Fprintf(r.out, "seed %d, histories of violations go to %s\n", r.seed, r.dir)

	var strands sync.WaitGroup
	errs := make([]error, len(r.strands))
	for i, topologies := range r.strands {
		strands.Go(func() {
			if errs[i] = r.strand(ctx, i, topologies, end); errs[i] != nil {
				cancel()
			}
		})
	}
	over := make(chan struct{})
	var progress sync.WaitGroup
	progress.Go(func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.judge.progress(time.Since(start))
			case <-over:
				return
			}
		}
	})
	strands.Wait()
	r.judge.pending.Wait()
	close(over)
	progress.Wait()
	r.judge.sum(r.seed)
	return errors.Join(errs...)
}

// strand plays rounds at some topologies by turns.
func (r *run) strand(ctx context.Context, i int, topologies []string, end time.Time) (err error) {
	stages := map[string]*stage{}
	defer func() {
		for _, s := range stages {
			err = errors.Join(err, r.judge.logs(s), s.close())
		}
	}()
	random := rand.New(rand.NewPCG(r.seed, uint64(i)))
	turn := random.IntN(len(topologies))
	for n := 0; ctx.Err() == nil; n++ {
		topology := topologies[(turn+n)%len(topologies)]
		if stages[topology] == nil {
			s, err := starters[topology](ctx)
			if err != nil {
				return err
			}
			s.topology = topology
			stages[topology] = s
		}
		length := min(roundTime, time.Until(end))
		if length < shortestRound {
			break
		}
		// Numbers are even for one turn of all topologies, odd for the next.
		round := &round{run: r, number: i + len(r.strands)*n, turn: n / len(topologies), stage: stages[topology], random: rand.New(rand.NewPCG(random.Uint64(), 1))}
		if err := round.play(ctx, length); err != nil && ctx.Err() == nil {
			return fmt.Errorf("round %d at %s: %w", round.number, topology, err)
		}
	}
	return nil
}
