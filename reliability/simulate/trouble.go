package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/reliability/history"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

// aboveAll is a deadline beyond any expected wait.
const aboveAll = 5 * time.Minute

// trouble adds to every other plan troubles that must not spread: a blocked log, and in half of
// these plans a worker with hopeless deadlines. A quarter of these plans has no other fault. It has
// random numbers of its own.
func (p *planner) trouble() {
	p = p.planner(3)
	if p.Chance(2) {
		return
	}
	if p.Chance(4) {
		p.contain()
	}
	for i := range p.Workers {
		p.Workers[i].Logs = p.Chance(2)
	}
	if p.Chance(2) {
		p.Workers = append(p.Workers, p.impatient())
	}
	at := time.Duration(0)
	for range 1 + p.IntN(4) {
		at += p.Between(0, 6*p.longest())
		f := Fault{At: at, Kind: Clog, Client: p.IntN(len(p.Clients)), Server: -1, For: min(p.Between(0, 3*p.longest()), maxHold)}
		p.Faults = append(p.Faults, f)
	}
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
}

// contain makes this a plan without other faults. The other workers have ample deadlines, and many
// locks: their renewals are sent together.
func (p *planner) contain() {
	p.Contained, p.Watchdog, p.Faults, p.Names, p.Workers = true, true, nil, nil, nil
	for i := range 8 {
		p.Names = append(p.Names, workload.Name{Name: fmt.Sprintf("job-%d", i), Fenced: p.Chance(2)})
	}
	for c := range p.Clients {
		for range 4 {
			w := Worker{Client: c}
			for range 4 + p.IntN(4) {
				t := p.turn(len(p.Workers))
				t.Timeout, t.Cancel, t.MaxWait = aboveAll, false, 0
				for i := range t.Steps {
					t.Steps[i].Timeout = 0
					if inner := t.Steps[i].Inner; inner != nil {
						inner.Timeout, inner.Cancel, inner.MaxWait = aboveAll, false, 0
					}
				}
				t.Steps = append(t.Steps, workload.Step{Pause: p.Between(0, 4*p.longest()), Do: workload.Look})
				w.Turns = append(w.Turns, t)
			}
			p.Workers = append(p.Workers, w)
		}
	}
}

// impatient returns a worker that can hardly meet the deadlines of its calls.
func (p *planner) impatient() Worker {
	w := Worker{Client: p.IntN(len(p.Clients)), Impatient: true}
	for range 20 + p.IntN(40) {
		t := p.turn(len(p.Workers))
		t.Pause = p.Between(0, p.longest()/4)
		p.source().Hurry(&t)
		w.Turns = append(w.Turns, t)
	}
	return w
}

// log is a client's log. While it is blocked, writes to it wait.
type log struct{ blocked workload.Episode }

func (l *log) write() { l.blocked.Wait(sleep) }

// trace writes each event to the log. It stands in for middleware/logging: that waits for its log
// with a mutex, and fake time would stand still. Package torture uses the real one.
func (l *log) trace() *locktrace.Trace {
	return &locktrace.Trace{
		Attempt:  func(context.Context, locktrace.AttemptInfo) { l.write() },
		Waiting:  func(context.Context, locktrace.WaitingInfo) { l.write() },
		Woken:    func(context.Context, locktrace.WokenInfo) { l.write() },
		Acquired: func(context.Context, locktrace.AcquiredInfo) { l.write() },
		Renewed:  func(context.Context, locktrace.RenewedInfo) { l.write() },
		Released: func(context.Context, locktrace.ReleasedInfo) { l.write() },
		Lost:     func(context.Context, locktrace.LostInfo) { l.write() },
	}
}

// spread returns the effects of a contained plan's trouble on other workers: failed calls and lost
// locks. A worker with a blocked log may delay acquires of the same client and name, and no others.
func (p *Plan) spread(events []history.Event) error {
	if !p.Contained {
		return nil
	}
	var errs []error
	for _, e := range events {
		if e.Client < 0 || p.Workers[e.Client].Logs || p.Workers[e.Client].Impatient || e.Outcome == history.OK || e.Outcome == history.Refused || p.delayed(e, events) {
			continue
		}
		errs = append(errs, fmt.Errorf("the trouble of others spread to worker %d: %s of %s at %v: %s: %s",
			e.Client, e.Kind, e.Name, time.Duration(e.Return), e.Outcome, e.Error))
	}
	return errors.Join(errs...)
}

// delayed reports whether e is an acquire beside another one of the same client and name, made by a
// worker with a log or with hopeless deadlines.
func (p *Plan) delayed(e history.Event, events []history.Event) bool {
	return e.Kind == history.Acquire && slices.ContainsFunc(events, func(other history.Event) bool {
		if other.Client < 0 || other.Kind != history.Acquire || other.Name != e.Name || other.Call > e.Return || other.Return < e.Call {
			return false
		}
		w := p.Workers[other.Client]
		return (w.Logs || w.Impatient) && w.Client == p.Workers[e.Client].Client
	})
}
