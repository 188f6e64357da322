package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/reliability/workload"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults. Most concern one link, between a client and a server.
const (
	DropReplies Kind = "replies dropped"              // and the connection broken later, or never
	Garble      Kind = "replies replaced by an error" // an unknown one
	Cut         Kind = "connections reset"
	HalfOpen    Kind = "connections half-open" // nothing arrives any more; the ends learn it late or never
	Freeze      Kind = "link frozen"           // both ways; then all arrives
	Delay       Kind = "link slow"
	Overtake    Kind = "connections slow"  // the open ones: later ones overtake them
	Pause       Kind = "client paused"     // its packets and its own progress, as by SIGSTOP
	Stall       Kind = "server frozen"     // as by SIGSTOP
	Crash       Kind = "server restarted"  // with its keys, without its scripts
	Refuse      Kind = "server refuses"    // error replies: out of memory, read-only ...
	Forget      Kind = "scripts forgotten" // SCRIPT FLUSH
	StepClock   Kind = "clock stepped"     // within the drift
	Leap        Kind = "clock leapt"       // further: leases end early; a loss
	Wipe        Kind = "server emptied"    // a loss; of a quorum's node only if it returns too soon
	Clog        Kind = "log blocked"       // of a client
	Exile       Kind = "server emptied and away for the longest TTL"
)

// Fault is one fault.
type Fault struct {
	At     time.Duration // from the start
	Kind   Kind
	Client int           // -1: all
	Server int           //
	For    time.Duration // how long it lasts
	By     time.Duration // of Delay, Overtake, StepClock, Leap
	N      int           // how many replies
	Lose   bool          // Cut: segments in flight to the server are lost
	Text   string        // Refuse: the error
}

// String describes the fault in a line.
func (f Fault) String() string {
	s := fmt.Sprintf("%v %s, client %d, server %d, for %v", f.At, f.Kind, f.Client, f.Server, f.For)
	if f.By != 0 {
		s += fmt.Sprintf(", by %v", f.By)
	}
	if f.N != 0 {
		s += fmt.Sprintf(", %d replies", f.N)
	}
	if f.Text != "" {
		s += ", " + f.Text
	}
	return s
}

// refusals are error replies of servers that executed nothing.
var refusals = []string{
	"OOM command not allowed when used memory > 'maxmemory'.",
	"READONLY You can't write against a read only replica.",
	"LOADING Redis is loading the dataset in memory",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"NOREPLICAS Not enough good replicas to write.",
	"BUSY Redis is busy running a script.",
	"TRYAGAIN Multiple keys request during rehashing of slot",
}

// maxHold is the maximum delay by the network or a server. The clean-up of an acquire with an
// unknown outcome lasts longer.
const maxHold = 10 * time.Second

// disturb draws the faults.
func (p *planner) disturb() {
	common := []Kind{DropReplies, DropReplies, Garble, Cut, HalfOpen, Freeze, Delay, Overtake, Overtake, Pause, Stall, Crash, Refuse, Forget, StepClock}
	lossy := p.Chance(10)
	switch {
	case p.Quorum && p.Chance(4):
		common = append(common, Exile, Exile)
		clear(p.Offsets) // a node without its counter mints tokens by its clock
		common = slices.DeleteFunc(common, func(k Kind) bool { return k == StepClock })
	case lossy && p.Chance(2):
		common = append(common, Wipe)
		common = slices.DeleteFunc(common, func(k Kind) bool { return k == StepClock })
		clear(p.Offsets)
	case lossy:
		common = append(common, Leap)
	}
	if p.Chance(10) {
		return // none
	}
	few := []Kind{workload.One(p.Random, common), workload.One(p.Random, common), workload.One(p.Random, common)} // a history of few kinds is easier to understand
	if p.Chance(2) {
		few = common
	}
	at, stepped := time.Duration(0), make([]time.Duration, p.servers())
	gap := p.longest() * time.Duration(1+p.IntN(4)) / 2
	for range 4 + p.IntN(24) {
		at += p.Between(0, gap)
		f := p.fault(workload.One(p.Random, few))
		f.At = at
		if f.Kind == StepClock {
			if at < stepped[f.Server] {
				continue // the drift is of a whole lease
			}
			stepped[f.Server] = at + 2*p.longest() + maxHold
		}
		p.Faults = append(p.Faults, f)
		if f.Kind == Exile {
			at += f.For // one node at a time
		}
	}
}

func (p *planner) fault(kind Kind) Fault {
	long := p.longest()
	f := Fault{Kind: kind, Client: p.IntN(len(p.Clients)), Server: p.IntN(p.servers()), For: min(p.Between(0, 2*long), maxHold)}
	if p.Chance(3) {
		f.Client = -1
	}
	switch kind {
	case DropReplies, Garble:
		f.N = 1 + p.IntN(3)
		if p.Chance(3) {
			f.For = 0 // neither end learns it
		}
	case Cut:
		f.Lose = p.Chance(2)
	case HalfOpen:
		if f.For > keepAlive || p.Chance(3) {
			f.For = keepAlive
		}
	case Delay:
		f.By = p.Between(0, long/4)
	case Overtake:
		f.By = p.Between(0, long+long/2)
	case Refuse:
		f.Text = workload.One(p.Random, refusals)
	case StepClock:
		f.By = p.Between(-p.drift(), p.drift())
	case Leap:
		f.By = p.Between(p.drift(), 2*long)
	case Exile:
		f.For = long + long/10 + p.drift() + p.Between(0, long)
	}
	switch kind {
	case Pause:
		f.Client, f.Server = p.IntN(len(p.Clients)), -1
	case Stall, Crash, Refuse, Forget, StepClock, Leap, Wipe, Exile:
		f.Client = -1
	}
	return f
}
