package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/reliability/history"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

// Outcome is the result of a schedule.
type Outcome struct {
	Plan       *Plan
	Operations int // recorded calls, looks and writes
	HandOvers  int // within a client
	Faults     int // injected ones, whether or not they affected a command
	Losses     int // holds lost with a server's state, as permitted
	Names      []history.Result
	Leftover   error // keys left at the servers, or an error of opening or closing
	Spread     error // effects of a trouble on other workers
}

// Violated reports whether a promise was broken.
func (o *Outcome) Violated() bool {
	return o.Leftover != nil || o.Spread != nil || slices.ContainsFunc(o.Names, func(r history.Result) bool { return r.Verdict == history.Violation })
}

// Undecided reports whether a check ran out of time.
func (o *Outcome) Undecided() bool {
	return slices.ContainsFunc(o.Names, func(r history.Result) bool { return r.Verdict == history.Unknown })
}

// checkTime bounds the check of one history.
const checkTime = 20 * time.Second

// Run executes a plan in a bubble of its own, and checks the history. t fails if a goroutine of the
// plan has not ended then.
func Run(t *testing.T, p *Plan, strategy workload.Opener) *Outcome {
	t.Helper()
	o := &Outcome{Plan: p}
	var events []history.Event
	var rules history.Rules
	synctest.Test(t, func(*testing.T) {
		events, rules = o.happen(strategy)
	})
	byName := history.Names(events)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		res := history.Check(byName[name], rules, checkTime)
		o.Operations += res.Operations
		o.Losses += res.Losses
		o.HandOvers += res.HandOvers
		o.Names = append(o.Names, res)
	}
	return o
}

// patience is for how many of the longest leases the workers run.
const patience = 40

// openFor is how long the library cleans up after a command without an answer, at least.
const openFor = 30 * time.Second

func (o *Outcome) happen(strategy workload.Opener) ([]history.Event, history.Rules) {
	p := o.Plan
	if strategy == nil {
		strategy = workload.Strategies[p.Strategy].Open
		if p.Fair {
			strategy = workload.Fair[p.Strategy].Open
		}
	}
	w, err := build(p, strategy)
	if err != nil {
		o.Leftover = errors.Join(err, w.close())
		return nil, history.Rules{}
	}
	r := history.NewRecorder(time.Now(), nil)
	store, passes := &history.Store{}, &workload.PassesInMemory{}
	stop, struck := make(chan struct{}), make(chan int)
	go func() { struck <- w.chaos(r, stop) }()
	var wg sync.WaitGroup
	until := time.Now().Add(patience * p.longest())
	for i, plan := range p.Workers {
		c := w.clients[plan.Client]
		one := &workload.Client{
			Calls: r.Client(i), Locker: w.lockers[plan.Client], Lockers: w.lockers, Names: p.Names,
			Accept: store.Accept, Passes: passes, Sleep: c.sleep, Until: until,
		}
		wg.Go(func() { c.work(one, plan) })
	}
	wg.Wait()
	close(stop)
	o.Faults = <-struck
	ended := r.Now()
	w.calm()
	sleep(maxHold + p.longest() + openFor + maxHold)
	o.Leftover = w.census()
	if err := w.close(); err != nil {
		o.Leftover = errors.Join(o.Leftover, err)
	}
	events := history.Settle(r.Events(), ended)
	o.Spread = p.spread(events)
	return events, w.rules()
}

// resend is after how long a command is resent if its connection broke. This network may deliver
// the first send late.
const resend = 5 * time.Millisecond

// rules returns the promises of the plan's locks in this network.
func (w *world) rules() history.Rules {
	r := history.Rules{
		Model: workload.Strategies[w.plan.Strategy].Model, Crowd: w.plan.Quorum,
		Linger:   w.slowest() + dialTimeout + time.Second,
		Resend:   resend,
		HandOver: w.plan.HandOver > 0, Watched: w.plan.Watchdog, Several: w.plan.Several,
	}
	switch {
	case w.plan.Strategy == "semaphore":
		r.Permits = workload.Permits
		r.Fair, r.Woken = true, workload.KeptForFirst+w.slowest()
	case w.plan.Fair, w.plan.Strategy == "rwhash":
		r.Fair, r.Woken = true, workload.KeptForFirst+w.slowest()
	default:
		r.Woken = workload.KeptForWoken + w.slowest()
	}
	return r
}

// Report describes the violation and how to repeat it.
func (o *Outcome) Report(dir string) error {
	errs := []error{o.Leftover, o.Spread}
	for _, res := range o.Names {
		if res.Verdict != history.Violation && res.Verdict != history.Unknown {
			continue
		}
		paths, err := res.Save(dir)
		errs = append(errs, err, fmt.Errorf("%s: %s: %s, see %v", cmp.Or(res.Name, "all"), res.Verdict, res.Reason, paths))
	}
	return errors.Join(errs...)
}
