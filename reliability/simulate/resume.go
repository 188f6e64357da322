package simulate

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/reliability/history"
)

// handOver lets holds be passed on and resumed, in every other plan. What it draws is apart from
// all else that a seed gives.
func (p *planner) handOver() {
	p = &planner{rand.New(rand.NewPCG(p.Seed, 2)), p.Plan}
	if p.chance(2) {
		return
	}
	for _, w := range p.Workers {
		for i := range w.Turns {
			t := &w.Turns[i]
			t.Resume = p.chance(3)
			for range p.IntN(3) {
				s := Step{Pause: p.between(0, t.TTL/3), Do: Pass}
				if p.chance(3) {
					s.Do, s.Client, s.Ask = Resume, p.IntN(len(p.Clients)), p.chance(2)
					if p.chance(2) {
						s.Timeout = p.between(0, t.TTL/4)
					}
				}
				t.Steps = slices.Insert(t.Steps, p.IntN(len(t.Steps)+1), s)
			}
		}
	}
}

// AcquireOnly takes all resumes out of the plan, for locks that know none.
func (p *Plan) AcquireOnly() {
	for _, w := range p.Workers {
		for i := range w.Turns {
			t := &w.Turns[i]
			t.Resume = false
			t.Steps = slices.DeleteFunc(t.Steps, func(s Step) bool { return s.Do == Pass || s.Do == Resume })
		}
	}
}

// passedOn keeps of each name the hold that was passed on last. It stays there when it was taken,
// so that several try.
type passedOn struct {
	mu     sync.Mutex
	byName map[string]history.Passed
}

func (p *passedOn) put(h *history.Hold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byName[h.Name()] = h.Pass()
}

func (p *passedOn) take(name string) (history.Passed, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.byName[name]
	return found, ok
}

// obtain acquires, or resumes.
func (w *worker) obtain(ctx context.Context, t Turn, req locker.Request) (*history.Hold, error) {
	if found, ok := w.passed.take(req.Name); ok && t.Resume {
		return w.calls.Resume(ctx, w.locker, found)
	}
	return w.calls.Acquire(ctx, w.locker, req)
}

var errMovedOn = errors.New("it was taken over")

// moveOn takes the worker's own hold over by way of another client, and returns the hold to go on
// with.
func (w *worker) moveOn(ctx context.Context, hold *history.Hold, s Step) *history.Hold {
	next, err := w.calls.Resume(ctx, w.lockers[s.Client], hold.Pass())
	if err != nil {
		return hold
	}
	hold.Held() // it does not know yet
	if s.Ask {
		_ = hold.Renew(ctx, hold.TTL())
		hold.Held()
	}
	hold.Abandon()
	hold.Lock.Hold().MarkLost(errMovedOn) // else a watchdog goes on renewing what a late acquire may bring back
	return next
}
