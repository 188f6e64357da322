package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/reliability/history"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

const (
	roundTime     = 8 * time.Second // of work by clients
	shortestRound = 2 * time.Second
	partTime      = 2 * time.Second
	groupsEach    = 2                // of each strategy
	clientsEach   = 2                // of each process in each group
	cohortOf      = 4                // of each process in a group with hand-overs
	workerLimit   = 60 * time.Second // for a worker to end after its time
	rest          = time.Second      // added to limits: a clean-up is tried again within it
)

var errNothing = errors.New("no command came that could be disturbed")

// round is a set of clients in several processes at one deployment, and the faults for them.
type round struct {
	*run
	number     int
	turn       int // number of earlier rounds with this topology
	name       string
	deployment *deployment
	groups     []group
	task       task
	random     *rand.Rand
	chosen     []lane
	lossy      bool
	length     time.Duration
	linger     time.Duration // how long after a call its effects may remain

	trouble *trouble // nil: none
	beside  []group  // in the process of the trouble: bystanders, and those who cause it

	mu    sync.Mutex
	crew  []*process
	past  []*process // the killed ones
	first int        // the next client's number
	rec   *history.Recorder
}

// plan chooses the groups and faults of a round, within the time left.
func (r *round) plan(left time.Duration) {
	r.length = min(roundTime, left)
	r.lossy = r.deployment.masters != nil || r.random.IntN(4) == 0
	switch {
	case (r.turn%4 == 1 || r.everyRound) && r.planTrouble(left):
	case r.turn%2 == 0:
		r.planSequences()
	default:
		r.planOne()
	}
	kinds := r.suiting(r.deployment)
	for _, kind := range kinds {
		for n := range groupsEach {
			r.groups = append(r.groups, r.group(r.ordered(kind), strconv.Itoa(n), contender, clientsEach))
		}
	}
	if r.trouble == nil {
		kind := kinds[r.random.IntN(len(kinds))]
		r.groups = append(r.groups, r.group(kind, string(impatient), impatient, providers))
	}
	if r.trouble == nil && r.random.IntN(3) > 0 && slices.Contains(kinds, handsOver) {
		r.groups = append(r.groups, r.cohort())
	}
}

// planSequences plans several faults at once, one after another in each lane.
func (r *round) planSequences() {
	r.name, r.linger = "sequences", rest+roundTime+longest
	for _, l := range lanes {
		l.faults = r.possible(l.faults)
		r.chosen = append(r.chosen, l)
	}
}

// planOne plans faults of one kind.
func (r *round) planOne() {
	var all []fault
	for _, l := range lanes {
		all = append(all, r.possible(l.faults)...)
	}
	f := all[r.random.IntN(len(all))]
	r.name, r.chosen, r.linger = f.kind, []lane{{f.kind, []fault{f}}}, rest
	if !f.brief {
		r.linger += longest
	}
}

// group returns a group of n clients in each process. id distinguishes groups of one strategy.
func (r *round) group(kind, id string, as role, n int) group {
	st := strategies[kind]
	rules := history.Rules{Model: st.Model, Linger: r.linger, Crowd: st.quorum}
	switch {
	case st.Model == history.Semaphore:
		rules.Permits = workload.Permits
		rules.Fair, rules.Woken = true, workload.KeptForFirst+rest
	case st.fair, st.Model == history.ReadWrite:
		rules.Fair, rules.Woken = true, workload.KeptForFirst+rest
	case !st.flawed:
		rules.Woken = workload.KeptForWoken + rest
	}
	name := fmt.Sprintf("%s-%s-%d-%s", kind, strings.ReplaceAll(r.deployment.topology, " ", "-"), r.number, id)
	return group{Name: name, Strategy: kind, Rules: rules, Role: as, Clients: n}
}

// ordered returns the strategy, or at random its variant with a strict order.
func (r *round) ordered(kind string) string {
	if _, ok := strategies[kind+fair]; ok && r.random.IntN(3) == 0 {
		return kind + fair
	}
	return kind
}

// cohort returns a group of clients that hand locks over to one another.
func (r *round) cohort() group {
	g := r.group(r.ordered(handsOver), "cohort", contender, cohortOf)
	g.Rules.HandOver, g.Rules.Watched = true, r.random.IntN(3) == 0
	ttl := r.random.IntN(len(leases) - 1)
	g.Cohort = &cohort{HandOver: minTTL/10 + time.Duration(r.random.Int64N(int64(longest))), TTLs: leases[ttl : ttl+1+r.random.IntN(2)]}
	return g
}

// possible returns the possible faults at the deployment. Each lane has at least those without a
// loss.
func (r *round) possible(all []fault) []fault {
	var some []fault
	for _, f := range all {
		if f.at(r.deployment) && (r.lossy || !f.loses) {
			some = append(some, f)
		}
	}
	return some
}

// play runs the round and gives its histories to the checker.
func (r *round) play(ctx context.Context, left time.Duration) error {
	r.rec = history.NewRecorder(r.epoch, nil)
	r.plan(left)
	stopWatching, err := r.watch(ctx)
	if err != nil {
		return err
	}
	if r.trouble != nil {
		r.deployment.latency(r.distance())
		defer r.deployment.latency(0)
	}
	if err := r.startWorkers(); err != nil {
		r.stop()
		stopWatching()
		return err
	}
	if r.trouble != nil {
		err = r.trouble.make(ctx, r)
	}
	err = errors.Join(err, r.disturb(ctx))
	for _, p := range r.deployment.proxies {
		p.Forget()
	}
	events, ended := r.gather()
	stopWatching()
	r.checker.workers(r, ended)
	if err != nil || ended != nil {
		return err // the history is incomplete
	}
	events = append(events, r.rec.Events()...)
	complaint, err := r.deployment.census(ctx)
	if err != nil {
		return err
	}
	r.checker.census(r, complaint)
	if r.trouble != nil {
		bystanders, others := r.splitBystanders(events)
		r.checker.bystanders(r, bystanders)
		events = others
	}
	r.checker.take(r, events)
	return nil
}

// watch records failovers, if there can be any, until the returned function is called.
func (r *round) watch(ctx context.Context) (stop func(), err error) {
	if r.deployment.masters == nil {
		return func() {}, nil
	}
	masters, err := r.deployment.settle(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.watchMasters(ctx, masters)
	}()
	return func() { cancel(); <-done }, nil
}

// startWorkers starts the processes. Their time begins when all are ready.
func (r *round) startWorkers() error {
	for range processes {
		p, err := startProcess()
		if err != nil {
			return err
		}
		r.crew = append(r.crew, p)
	}
	start := r.rec.Now()
	r.task = task{
		Kind: r.deployment.kind, Master: r.deployment.master,
		Start: start, End: start + int64(r.length), Part: partTime, Store: r.store.addr(),
	}
	for i, p := range r.crew {
		if err := r.begin(p, i); err != nil {
			return err
		}
	}
	return nil
}

// begin gives process i its task.
func (r *round) begin(p *process, i int) error {
	t := r.task
	t.Seed, t.Targets, t.First, t.Groups = r.random.Uint64(), r.deployment.targets(i), r.first, r.groups
	if r.trouble != nil && i == troubleProcess {
		t.Groups = r.beside
	}
	r.first += clientsOf(t.Groups)
	return p.begin(t)
}

func (r *round) process(i int) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.crew[i]
}

// replace kills a process and starts another in its place.
func (r *round) replace(i int) error {
	old := r.process(i)
	old.kill()
	p, err := startProcess()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.past = append(r.past, old)
	r.crew[i] = p
	return r.begin(p, i)
}

// stop ends all processes.
func (r *round) stop() {
	for _, p := range r.crew {
		p.kill()
	}
}

// disturb injects faults in each lane until the clients' time is over.
func (r *round) disturb(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.task.End-r.rec.Now()))
	defer cancel()
	errs := make(chan error, len(r.chosen))
	for _, l := range r.chosen {
		d := &disturber{r, rand.New(rand.NewPCG(r.random.Uint64(), 0))}
		go func() { errs <- d.lane(ctx, l) }()
	}
	var err error
	for range r.chosen {
		err = errors.Join(err, <-errs)
	}
	<-ctx.Done() // if no fault is possible
	return err
}

// lane injects one fault after another.
func (d *disturber) lane(ctx context.Context, l lane) error {
	for len(l.faults) > 0 && pause(ctx, time.Duration(d.random.Int64N(int64(500*time.Millisecond)))) {
		f := l.faults[d.random.IntN(len(l.faults))]
		d := &disturber{d.round, rand.New(rand.NewPCG(d.random.Uint64(), 0))} // a fault does not change the random choices of the next
		from := d.rec.Now()
		switch err := f.do(ctx, d); {
		case errors.Is(err, errNothing):
		case err != nil:
			return fmt.Errorf("fault %q at %s: %w", f.kind, d.deployment.topology, err)
		default:
			d.rec.Note(f.kind, from, d.rec.Now())
			d.checker.fault(f.kind)
		}
	}
	return nil
}

// nameInUse returns a name contended now.
func (d *disturber) nameInUse() string {
	g := d.groups[d.random.IntN(len(d.groups))]
	return partName(g.Name, int(time.Duration(max(d.rec.Now()-d.task.Start, 0))/partTime))
}

// gather waits for the processes, and returns the events of all, including killed ones.
func (r *round) gather() ([]history.Event, error) {
	var events []history.Event
	var errs []error
	for _, p := range append(r.past, r.crew...) {
		ended, err := p.end(r.rec, workerLimit)
		errs = append(errs, err)
		events = append(events, ended...)
	}
	return events, errors.Join(errs...)
}
