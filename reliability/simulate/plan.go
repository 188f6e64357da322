package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Plan is a schedule: all that its seed decides. How goroutines that are ready at the same instant
// follow each other is not part of it.
type Plan struct {
	Seed     uint64
	Strategy string   // "single", "reentrant", "rwhash"
	Quorum   bool     // redlock over five servers of that strategy
	Watchdog bool     // holds are renewed
	Retry    bool     // acquires wait
	Clients  []string // the provider of each client
	Names    []Name
	TTLs     []time.Duration
	Offsets  []time.Duration // of the servers' clocks, from the start on
	Workers  []Worker
	Faults   []Fault // in the order of their times
	// Contained says that there is no fault but what must not spread to other workers: a log that
	// blocks, an impatient worker.
	Contained bool
}

// Name is a lock. Its fencing tokens are asked for always, or never.
type Name struct {
	Name   string
	Fenced bool
}

// Worker is what one goroutine of a client does.
type Worker struct {
	Client    int
	Turns     []Turn
	Logs      bool // what happens to its locks, in its client's log
	Impatient bool // its deadlines are hopeless
}

// Turn is one hold, from the acquire, or resume, to the release.
type Turn struct {
	Resume  bool          // what was passed on last, if anything was, rather than acquire
	Pause   time.Duration // before it
	Name    int
	Shared  bool
	Owner   string
	TTL     time.Duration
	Timeout time.Duration // of the acquire's context
	Cancel  bool          // rather than by a deadline it ends by a cancellation
	MaxWait time.Duration // instead of both
	NoWait  bool
	Steps   []Step
	End     End
}

// Action is what a holder does.
type Action string

// The actions.
const (
	Look      Action = "look"
	Write     Action = "write"
	Renew     Action = "renew"
	Downgrade Action = "downgrade"
	Upgrade   Action = "upgrade"
	Nest      Action = "nest"   // acquire again, as the same owner
	Pass      Action = "pass"   // let others resume the hold, and go on
	Resume    Action = "resume" // by another client, and go on with that
)

// Step is one of them.
type Step struct {
	Pause   time.Duration // before it
	Do      Action
	TTL     time.Duration // of Renew
	Timeout time.Duration // of its context; 0: none
	Inner   *Turn         // of Nest
	Client  int           // of Resume
	Ask     bool          // of Resume: try to renew the old lock, too
}

// End is how a hold ends.
type End string

// The ends.
const (
	Release  End = "release"
	Hasty    End = "hasty"    // a release under a context that is cancelled already
	Overstay End = "overstay" // wait for the end of the lease, then release
	Abandon  End = "abandon"  // let the lease end
)

// longest and shortest are of the plan's TTLs.
func (p *Plan) longest() time.Duration  { return slices.Max(p.TTLs) }
func (p *Plan) shortest() time.Duration { return slices.Min(p.TTLs) }

// drift is by how much a server's clock may be off while a lease lasts: what a Deadline allows for,
// less the millisecond by which reentrant and rwhash, which count in whole ones, may end a lease
// too soon.
func (p *Plan) drift() time.Duration { return p.shortest()/100 + time.Millisecond }

// String is the plan in a line.
func (p *Plan) String() string {
	s := p.Strategy
	if p.Quorum {
		s = "redlock over " + s
	}
	for _, with := range []struct {
		on   bool
		name string
	}{{p.Watchdog, "watchdog"}, {p.Retry, "retry"}, {p.Contained, "contained"}} {
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
	*rand.Rand
	*Plan
}

// NewPlan returns the schedule of a seed.
func NewPlan(seed uint64) *Plan {
	p := &planner{rand.New(rand.NewPCG(seed, 1)), &Plan{Seed: seed}}
	p.Strategy = one(p, strategies)
	p.Quorum = p.chance(5)
	p.Watchdog = p.chance(3)
	p.Retry = p.IntN(3) > 0
	for range 2 + p.IntN(2) {
		p.Clients = append(p.Clients, one(p, providers))
	}
	for i := range 1 + p.IntN(2) {
		p.Names = append(p.Names, Name{fmt.Sprintf("job-%d", i), p.chance(2)})
	}
	short := p.IntN(len(leases))
	p.TTLs = leases[short:min(short+1+p.IntN(2), len(leases))]
	p.Offsets = make([]time.Duration, p.servers())
	for i := range p.Offsets {
		p.Offsets[i] = p.between(-time.Hour, time.Hour)
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
	p.disturb()
	p.trouble()
	if !p.Contained {
		p.handOver()
	}
	return p.Plan
}

func (p *Plan) servers() int {
	if p.Quorum {
		return 5
	}
	return 1
}

func (p *planner) turn(worker int) Turn {
	ttl := one(p, p.TTLs)
	t := Turn{
		Pause: p.between(0, ttl), Name: p.IntN(len(p.Names)), TTL: ttl, Owner: fmt.Sprintf("w%d", worker),
		Timeout: p.between(time.Millisecond, 2*ttl), Cancel: p.chance(3),
		Shared: p.Strategy == "rwhash" && p.IntN(3) > 0,
		End:    one(p, []End{Release, Release, Release, Release, Hasty, Overstay, Abandon}),
	}
	if p.Strategy == "reentrant" {
		t.Owner = fmt.Sprintf("owner%d", p.IntN(3))
	}
	if p.Watchdog && (t.End == Overstay || t.End == Abandon) {
		t.End = Release // it would be renewed for ever
	}
	switch p.IntN(4) {
	case 0:
		t.MaxWait = p.between(time.Millisecond, 3*ttl)
	case 1:
		t.NoWait = true
	case 2:
		t.Timeout = p.between(0, ttl/20) // in the middle of it
	}
	for range p.IntN(6) {
		t.Steps = append(t.Steps, p.step(t))
	}
	return t
}

func (p *planner) step(t Turn) Step {
	does := []Action{Look, Renew, Renew}
	if p.Names[t.Name].Fenced {
		does = append(does, Write, Write)
	}
	switch p.Strategy {
	case "rwhash":
		does = append(does, Downgrade, Upgrade)
	case "reentrant":
		does = append(does, Nest)
	}
	s := Step{Pause: p.between(0, t.TTL/3), Do: one(p, does), TTL: one(p, p.TTLs)}
	if p.chance(2) {
		s.Timeout = p.between(time.Millisecond, t.TTL)
	}
	if s.Do == Nest {
		inner := t
		inner.Pause, inner.TTL, inner.Steps = 0, one(p, p.TTLs), nil
		for range p.IntN(3) {
			inner.Steps = append(inner.Steps, Step{Pause: p.between(0, t.TTL/3), Do: one(p, []Action{Look, Renew}), TTL: inner.TTL})
		}
		s.Inner = &inner
	}
	return s
}

// chance is true once in n times.
func (p *planner) chance(n int) bool { return p.IntN(n) == 0 }

// between draws a duration that is hardly drawn twice.
func (p *planner) between(from, to time.Duration) time.Duration {
	return from + time.Duration(p.Int64N(int64(to-from)))
}

func one[T any](p *planner, of []T) T { return of[p.IntN(len(of))] }
