package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/reliability/workload"
)

// Plan is a schedule: all decisions of its seed. The seed does not decide the order of goroutines
// ready at the same instant.
type Plan struct {
	Seed     uint64
	Strategy string        // "single", "reentrant", "rwhash", "semaphore"
	Quorum   bool          // redlock over five servers of the strategy
	Watchdog bool          // holds are renewed
	Retry    bool          // acquires wait
	HandOver time.Duration // the Tenure of handover's Config; 0: no hand-overs
	Fair     bool          // the order of waiters is strict
	Several  bool          // each lock is acquired with another, by locker.AcquireAll
	Clients  []string      // the provider of each client
	Names    []workload.Name
	TTLs     []time.Duration
	Offsets  []time.Duration // of the servers' clocks, from the start on
	Workers  []Worker
	Faults   []Fault // in the order of their times
	// Contained: the only faults are those that must not affect other workers, a blocked log and an
	// impatient worker.
	Contained bool
}

// Worker is the work of one goroutine of a client.
type Worker struct {
	Client    int
	Turns     []workload.Turn
	Logs      bool // it logs the events of its locks to its client's log
	Impatient bool // its deadlines are hopeless
}

// longest and shortest return those of the plan's TTLs.
func (p *Plan) longest() time.Duration  { return slices.Max(p.TTLs) }
func (p *Plan) shortest() time.Duration { return slices.Min(p.TTLs) }

// drift returns how far a server's clock may be off during a lease: the allowance of a Deadline,
// less one millisecond, because reentrant and rwhash round to milliseconds.
func (p *Plan) drift() time.Duration { return p.shortest()/100 + time.Millisecond }

// String describes the plan in a line.
func (p *Plan) String() string {
	s := p.Strategy
	if p.Quorum {
		s = "redlock over " + s
	}
	for _, with := range []struct {
		on   bool
		name string
	}{{p.Watchdog, "watchdog"}, {p.Retry, "retry"}, {p.HandOver > 0, "hand-over"}, {p.Fair, "fair"}, {p.Several, "several"}, {p.Contained, "contained"}} {
		if with.on {
			s += ", " + with.name
		}
	}
	return fmt.Sprintf("%s, clients %s, %d workers, %d names, TTLs %v", s, strings.Join(p.Clients, " "), len(p.Workers), len(p.Names), p.TTLs)
}

var (
	strategies = []string{"single", "reentrant", "rwhash"}
	providers  = []string{"goredis", "rueidis", "redigo"}
	leases     = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second, 3 * time.Second}
)

// planner draws a plan.
type planner struct {
	workload.Random
	*Plan
}

// planner returns a planner with random numbers of its own: one for each stream of a seed.
func (p *Plan) planner(stream uint64) *planner {
	return &planner{workload.Random{Rand: rand.New(rand.NewPCG(p.Seed, stream))}, p}
}

// NewPlan returns the schedule of a seed.
func NewPlan(seed uint64) *Plan {
	p := (&Plan{Seed: seed}).planner(1)
	p.Strategy = workload.One(p.Random, strategies)
	p.Quorum = p.Chance(5)
	if !p.Quorum && p.planner(6).Chance(5) {
		p.Strategy = "semaphore"
	}
	p.Watchdog = p.Chance(3)
	p.Retry = p.IntN(3) > 0
	for range 2 + p.IntN(2) {
		p.Clients = append(p.Clients, workload.One(p.Random, providers))
	}
	for i := range 1 + p.IntN(2) {
		p.Names = append(p.Names, workload.Name{Name: fmt.Sprintf("job-%d", i), Fenced: p.Chance(2)})
	}
	short := p.IntN(len(leases))
	p.TTLs = leases[short:min(short+1+p.IntN(2), len(leases))]
	p.Offsets = make([]time.Duration, p.servers())
	for i := range p.Offsets {
		p.Offsets[i] = p.Between(-time.Hour, time.Hour)
	}
	for c := range p.Clients {
		for range 1 + p.IntN(3) {
			w := Worker{Client: c}
			for range 6 + p.IntN(8) {
				w.Turns = append(w.Turns, p.turn(len(p.Workers)))
			}
			p.Workers = append(p.Workers, w)
		}
	}
	p.cohorts()
	_, ordered := workload.Fair[p.Strategy]
	p.Fair = ordered && !p.Quorum && p.planner(5).Chance(3)
	p.Several = p.planner(7).Chance(4)
	p.disturb()
	p.trouble()
	if !p.Contained {
		p.passOn()
		p.minHolds()
	}
	return p.Plan
}

func (p *Plan) servers() int {
	if p.Quorum {
		return 5
	}
	return 1
}

// source draws the turns of the plan's workers.
func (p *planner) source() workload.Source {
	return workload.Source{
		Random: p.Random, Model: workload.Strategies[p.Strategy].Model,
		Names: p.Names, TTLs: p.TTLs, Watched: p.Watchdog,
	}
}

func (p *planner) turn(worker int) workload.Turn { return p.source().Turn(fmt.Sprintf("w%d", worker)) }

// cohorts lets the workers of a client hand locks over to each other, in every other plan for
// single or rwhash with retry, at one server.
func (p *planner) cohorts() {
	p = p.planner(3)
	if !p.Retry || p.Quorum || p.Strategy != "single" && p.Strategy != "rwhash" || p.Chance(2) {
		return
	}
	p.shareChains()
}

// ShareChains lets the workers of each client hand locks over to each other. Most of their turns
// are made to allow it, and for one name.
func (p *Plan) ShareChains() { p.planner(4).shareChains() }

func (p *planner) shareChains() {
	p.Retry, p.HandOver = true, p.Between(10*time.Millisecond, 2*p.TTLs[0])
	for _, w := range p.Workers {
		for i := range w.Turns {
			t := &w.Turns[i]
			t.Owner = ""
			t.Pause /= 8
			if !p.Chance(4) {
				t.Name, t.Shared, t.TTL, t.NoWait, t.Timeout = 0, false, p.TTLs[0], false, max(t.Timeout, p.TTLs[0])
			}
		}
	}
}

// passOn lets holds be passed on and resumed, in every other plan. It has random numbers of its
// own.
func (p *planner) passOn() {
	p = p.planner(2)
	if p.Chance(2) {
		return
	}
	for _, w := range p.Workers {
		for i := range w.Turns {
			p.source().PassOn(&w.Turns[i], len(p.Clients))
		}
	}
}

// minHolds lets names stay taken for MinHold after some of the turns, in every other plan.
func (p *planner) minHolds() {
	p = p.planner(7)
	if p.Chance(2) {
		return
	}
	p.MinHolds()
}

// MinHolds lets names stay taken for MinHold after some of the turns.
func (p *Plan) MinHolds() {
	q := p.planner(8)
	for _, w := range p.Workers {
		for i := range w.Turns {
			if q.Chance(3) {
				q.source().MinHold(&w.Turns[i])
			}
		}
	}
}

// FreeAtOnce takes all minimum holds out of the plan.
func (p *Plan) FreeAtOnce() {
	for _, w := range p.Workers {
		for i := range w.Turns {
			w.Turns[i].MinHold = 0
			for _, s := range w.Turns[i].Steps {
				if s.Inner != nil {
					s.Inner.MinHold = 0
				}
			}
		}
	}
}

// AcquireOnly takes all resumes out of the plan, for locks without resumes.
func (p *Plan) AcquireOnly() {
	for _, w := range p.Workers {
		for i := range w.Turns {
			t := &w.Turns[i]
			t.Resume = false
			t.Steps = slices.DeleteFunc(t.Steps, func(s workload.Step) bool { return s.Do == workload.Pass || s.Do == workload.Resume })
		}
	}
}
