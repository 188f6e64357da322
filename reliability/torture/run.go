package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// run is one run of the program.
type run struct {
	out     io.Writer
	seed    uint64
	dir     string // for the histories of violations; empty: one among temporary files
	epoch   time.Time
	store   *storeServer
	checker *checker
	// strands are lists of topologies. The topologies of a strand take turns; strands run at once.
	strands [][]string
	// kinds are the strategies to try; empty: all suitable ones.
	kinds []string
	// troubles are the possible troubles. everyRound: each round has one.
	troubles   []trouble
	everyRound bool
	// untilViolation ends the run after the round of the first violation.
	untilViolation bool
}

// mostFailed is the most consecutive failed rounds of a strand: one more fails the run. A round
// fails if it could not be prepared, disturbed or cleaned up. All failed rounds are counted.
const mostFailed = 3

var everywhere = [][]string{{"one server", "cluster"}, {"five masters", "sentinels", "replicated cluster"}}

// setTopologies restricts the run to some topologies. Empty: all.
func (r *run) setTopologies(list string) error {
	if list == "" {
		return nil
	}
	r.strands = [][]string{strings.Split(list, ",")}
	for _, topology := range r.strands[0] {
		if starters[topology] == nil {
			return fmt.Errorf("-on %q: want some of %q", topology, slices.Sorted(maps.Keys(starters)))
		}
	}
	return nil
}

// setStrategies restricts the run to some strategies. Empty: all that suit.
func (r *run) setStrategies(list string) error {
	if list == "" {
		return nil
	}
	r.kinds = strings.Split(list, ",")
	for _, kind := range r.kinds {
		if _, ok := strategies[kind]; !ok {
			return fmt.Errorf("-strategies %q: want some of %q", kind, slices.Sorted(maps.Keys(strategies)))
		}
	}
	return nil
}

// setTrouble gives each round a trouble of this kind. Empty: some rounds have one.
func (r *run) setTrouble(kind string) error {
	r.troubles, r.everyRound = troubles, kind != ""
	if kind == "" {
		return nil
	}
	i := slices.IndexFunc(troubles, func(t trouble) bool { return t.kind == kind })
	if i < 0 {
		return fmt.Errorf("-beside %q: there is no such trouble", kind)
	}
	r.troubles = troubles[i : i+1]
	return nil
}

// suiting returns the strategies to try at a deployment.
func (r *run) suiting(s *deployment) []string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(strategies)) {
		st := strategies[kind]
		if st.quorum != (len(s.targets(0)) > 1) {
			continue
		}
		if slices.Contains(r.kinds, kind) || len(r.kinds) == 0 && !st.flawed && !st.fair {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// play plays the strands. Each ends when less than shortestRound of length is left.
func (r *run) play(ctx context.Context, length time.Duration) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.epoch, err = bootEpoch(); err != nil {
		return err
	}
	if r.dir == "" {
		r.dir = filepath.Join(os.TempDir(), fmt.Sprintf("torture-%d", r.seed))
	}
	r.checker = newChecker(r.out, r.dir)
	tmp, err := os.MkdirTemp("", "torture-store-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if r.store, err = serveStore(tmp); err != nil {
		return err
	}
	defer r.store.close()
	start := time.Now()
	fmt.Fprintf(r.out, "seed %d, histories of violations go to %s\n", r.seed, r.dir)

	var strands sync.WaitGroup
	errs := make([]error, len(r.strands))
	for i, topologies := range r.strands {
		strands.Go(func() {
			if errs[i] = r.strand(ctx, i, topologies, length); errs[i] != nil {
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
				r.checker.progress(time.Since(start))
			case <-over:
				return
			}
		}
	})
	strands.Wait()
	r.checker.pending.Wait()
	close(over)
	progress.Wait()
	r.checker.printTotals(r.seed)
	return errors.Join(errs...)
}

// strand plays rounds at some topologies in turn. left is the time for their clients.
func (r *run) strand(ctx context.Context, i int, topologies []string, left time.Duration) (err error) {
	stages := map[string]*deployment{}
	defer func() {
		for _, s := range stages {
			err = errors.Join(err, r.checker.logs(s), s.close())
		}
	}()
	random := r.random(i)
	turn := random.IntN(len(topologies))
	failed := 0
	for n := 0; ctx.Err() == nil && left >= shortestRound; n++ {
		topology := topologies[(turn+n)%len(topologies)]
		if stages[topology] == nil {
			s, err := starters[topology](ctx)
			if err != nil {
				return err
			}
			s.topology = topology
			stages[topology] = s
			if len(r.suiting(s)) == 0 {
				return fmt.Errorf("none of the strategies %q suits %s", r.kinds, topology)
			}
		}
		round := r.round(i, n, len(topologies), stages[topology], random)
		err := round.play(ctx, left)
		left -= round.length
		if r.untilViolation && r.checker.broken() {
			return err
		}
		if err == nil || ctx.Err() != nil {
			failed = 0
			continue
		}
		// The state of the servers is unknown, so new ones replace them.
		err = fmt.Errorf("round %d at %s (%s): %w", round.number, topology, round.name, err)
		r.checker.fail(err)
		if failed++; failed > mostFailed {
			return err
		}
		if err := stages[topology].close(); err != nil {
			return err
		}
		delete(stages, topology)
	}
	return nil
}

// random returns the source of random numbers of a strand.
func (r *run) random(strand int) *rand.Rand { return rand.New(rand.NewPCG(r.seed, uint64(strand))) }

// round returns the nth round of a strand.
func (r *run) round(strand, n, topologies int, s *deployment, random *rand.Rand) *round {
	return &round{
		run: r, number: strand + len(r.strands)*n, turn: n / topologies, deployment: s,
		random: rand.New(rand.NewPCG(random.Uint64(), uint64(n))),
	}
}
