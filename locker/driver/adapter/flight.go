package adapter

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
)

const (
	// lag is how long a flight waits for replies after the deadlines of all its callers. A late reply
	// settles an outcome, and the connection is kept.
	lag = time.Second
	// undated is how long a flight lasts for a caller without a deadline.
	undated = time.Minute
)

// flight is one round trip. The Pipeline's mutex guards it.
type flight struct {
	began    time.Time
	slow     bool             // it counts no longer
	ctx      *bounded.Context // for Send; nil: a caller's
	commands []*Command
	waiting  int  // callers that have not left
	sent     bool // a command whose caller has left may have been sent
}

// begin adds a flight without commands. The mutex is held.
func (p *Pipeline) begin(now time.Time) *flight {
	var f *flight
	if n := len(p.spare); n > 0 {
		f, p.spare = p.spare[n-1], p.spare[:n-1]
	} else {
		f = new(flight)
	}
	f.began = now
	p.flights = append(p.flights, f)
	return f
}

// beginNext begins a flight if a command waits and one may begin; otherwise it returns nil. The
// mutex is held.
func (p *Pipeline) beginNext() *flight {
	if p.urgent.first != nil && p.free(true) || p.others.first != nil && p.free(false) {
		return p.begin(time.Now())
	}
	return nil
}

// end removes f. The mutex is held.
func (p *Pipeline) end(f *flight) {
	i := slices.Index(p.flights, f)
	p.flights = slices.Delete(p.flights, i, i+1)
	if f.slow {
		p.slow--
	}
	clear(f.commands)
	*f = flight{commands: f.commands[:0]}
	if len(p.spare) < manyFlights {
		p.spare = append(p.spare, f)
	}
}

// start runs f, unless it is nil, in a goroutine.
func (p *Pipeline) start(f *flight) {
	if f != nil {
		go p.run(f)
	}
}

// run runs f, and flights after it while somebody waits.
func (p *Pipeline) run(f *flight) {
	for f != nil {
		if p.commands.Load() > manyCallers {
			runtime.Gosched() // callers that have just got their answers come back with their next commands
		}
		if p.fill(f) {
			p.client.Send(f.ctx, f.commands)
			f.ctx.Stop()
		}
		f = p.finish(f)
	}
}

// fill gives f the waiting commands, and reports whether there are any.
func (p *Pipeline) fill(f *flight) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.began = time.Now()
	p.move(&p.urgent, f)
	if len(p.flights) <= p.places(false) { // else f has one of the places for urgent calls
		p.move(&p.others, f)
	}
	f.waiting = len(f.commands)
	if f.waiting > 0 && f.commands[0].HasWait() {
		p.discount(f) // it takes as long as the replicas do
	}
	p.watch()
	if f.waiting == 0 {
		return false
	}
	f.ctx = new(bounded.Context)
	latest := time.Time{}
	for _, c := range f.commands {
		f.ctx.IsUrgent = f.ctx.IsUrgent || c.urgent
		deadline, ok := c.ctx.Deadline()
		if !ok {
			deadline = f.began.Add(undated)
		}
		if deadline.After(latest) {
			latest = deadline
		}
	}
	f.ctx.Start(context.WithoutCancel(f.commands[0].ctx), latest.Add(lag)) // with its values, for hooks
	return true
}

// move moves commands from the front of q to f, as many as it takes. The mutex is held.
func (p *Pipeline) move(q *queue, f *flight) {
	for c := q.first; c != nil && len(f.commands) < p.size(); c = q.first {
		if n := len(f.commands); n > 0 && (c.HasWait() || f.commands[n-1].HasWait()) {
			return
		}
		q.remove(c)
		c.flight, f.commands = f, append(f.commands, c)
	}
}

// size is how many commands a flight has at most.
func (p *Pipeline) size() int {
	if p.client.Single {
		return 1
	}
	return maxFlight
}

// finish ends f after the answers to its commands. It returns the next flight to run, or nil.
func (p *Pipeline) finish(f *flight) *flight {
	var late []*Command
	p.mu.Lock()
	for _, c := range f.commands {
		c.demandAnswer()
		c.answered, c.flight = true, nil
		if c.late != nil {
			late = append(late, c)
		} else {
			p.commands.Add(-1)
		}
		close(c.done)
	}
	p.end(f)
	f = p.beginNext()
	p.mu.Unlock()
	for _, c := range late {
		c.late(c.outcome())
	}
	return f
}

// dismiss ends the context of f if all callers have left: at once, or after lag if late answers may
// come. The mutex is held.
func (p *Pipeline) dismiss(f *flight) {
	switch {
	case f.ctx == nil || f.waiting > 0:
	case !f.sent || p.closing:
		f.ctx.Stop()
	default:
		time.AfterFunc(lag, f.ctx.Stop)
	}
}

// watch starts the timer of findSlow while commands wait. The mutex is held.
func (p *Pipeline) watch() {
	switch {
	case p.watching || p.urgent.first == nil && p.others.first == nil:
		return
	case p.timer == nil:
		p.timer = time.AfterFunc(slowFlight, p.findSlow)
	default:
		p.timer.Reset(slowFlight)
	}
	p.watching = true
}

// findSlow begins a flight for each slow one, and for commands of a group.
func (p *Pipeline) findSlow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watching = false
	now := time.Now()
	for _, f := range p.flights {
		if now.Sub(f.began) >= slowFlight {
			p.discount(f)
		}
	}
	p.start(p.beginNext())
	p.watch()
}

// discount makes f count no longer, and lets a flight begin in its stead. The mutex is held.
func (p *Pipeline) discount(f *flight) {
	if !f.slow {
		f.slow = true
		p.slow++
		p.start(p.beginNext())
	}
}
