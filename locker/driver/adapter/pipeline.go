package adapter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/internal/gather"
)

const (
	// maxFlight is how many commands travel together at most. They share what befalls their
	// connection.
	maxFlight = 32
	// manyCallers is the number of callers from which a few full flights are faster than many.
	manyCallers = 8
	// manyFlights and fewFlights are how many flights are under way at once, up to manyCallers and
	// beyond.
	manyFlights, fewFlights = 4, 2
	// slowFlight is the time after which a flight does not count: others begin beside it.
	slowFlight = time.Millisecond
)

// Pipeline sends commands to one server. Commands that come while others are under way travel
// together: they take the next flight, one round trip over one connection. If nothing is under way,
// a caller sends its command at once, by itself and, if [Client.Inline] allows it, in its own
// goroutine.
//
// A flight has up to 32 commands. Up to four flights are under way at once, or two while more than
// eight callers wait. A flight older than a millisecond, or with a WAIT, no longer counts toward
// this limit: a distant server gets a flight each millisecond, and a silent connection delays only
// its own callers. Commands of urgent calls ([driver.Urgent]) go before others.
type Pipeline struct {
	client   Client
	commands atomic.Int32 // whose callers still wait
	expiries expiries

	mu             sync.Mutex
	urgent, others queue     // of commands without a flight
	flights        []*flight // under way, the oldest first
	slow           int       // how many of them count no longer
	spare          []*flight // to save allocations
	timer          *time.Timer
	watching       bool // timer is set
	closing        bool // nobody waits for late answers any more
}

// NewPipeline returns a Pipeline to the server of a client.
func NewPipeline(c Client) *Pipeline {
	c.Connections = max(c.Connections, 2)
	if c.SendInline == nil {
		c.SendInline = func(ctx context.Context, c1 *Command) { c.Send(ctx, c1.alone[:]) }
	}
	return &Pipeline{client: c}
}

// To implements [Pipelines] for a client of one server.
func (p *Pipeline) To(string) *Pipeline { return p }

// Close frees the timers once nothing is under way. Nobody waits for late answers any more.
func (p *Pipeline) Close() {
	p.expiries.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = true
	for _, f := range p.flights {
		p.dismiss(f)
	}
}

// do sends c, and returns soon after ctx ends. If the error is a driver.PendingError, c may have no
// answer yet, and must not be read.
func (p *Pipeline) do(ctx context.Context, c *Command) error {
	if err := ctx.Err(); err != nil {
		return driver.NotSent(err)
	}
	began := time.Now()
	c.alone[0] = c
	switch call := gather.CallOf(ctx); {
	case call.Waits():
		p.gather(ctx, call, c)
	case p.sendAlone(ctx, c, began):
		c.demandAnswer()
		return p.explain(ctx, began, c.err)
	default:
		p.enqueue(ctx, c)
	}
	err := p.wait(ctx, c, began)
	if err == nil {
		err = c.err
	}
	return p.explain(ctx, began, err)
}

// explain returns err, of a command whose caller came at the time began, or nil. It adds the error
// of an ended ctx, and to an unsent command the client's failures since.
func (p *Pipeline) explain(ctx context.Context, began time.Time, err error) error {
	if err == nil {
		return nil
	}
	end := Ended(ctx)
	switch {
	case driver.CodeOf(err) != "":
		return err
	case end == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		other := error(&otherEndError{err})
		if errors.Is(err, driver.ErrNotSent) {
			other = driver.NotSent(other)
		}
		return other
	case end == nil:
		return err
	}
	if !errors.Is(err, end) {
		err = fmt.Errorf("%w: %w", end, err)
	}
	if p.client.Unsent != nil && errors.Is(err, driver.ErrNotSent) {
		return p.client.Unsent(err, began)
	}
	return err
}

// otherEndError is the error of a command cut short by the end of another context, such as one of
// the client's. It does not match that end: the caller would take it for its own.
type otherEndError struct{ err error }

func (e *otherEndError) Error() string { return "not the caller's context ended: " + e.err.Error() }

// sendAlone sends c in this goroutine, if it may, and reports whether it has.
func (p *Pipeline) sendAlone(ctx context.Context, c *Command, now time.Time) bool {
	if _, ends := ctx.Deadline(); !ends && !driver.Cancellable(ctx) {
		// Its caller waits for a connection as long as the client's options say, and never leaves.
		p.client.Send(ctx, c.alone[:])
		return true
	}
	if p.commands.Load() >= manyCallers || c.HasWait() || p.client.Inline == nil || !p.client.Inline(ctx) {
		return false
	}
	f := p.beginAlone(ctx, now)
	if f == nil {
		return false
	}
	sending := p.expiries.share(ctx, now)
	defer func() { // also if the client or one of its hooks panics
		unshare(sending)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.commands.Add(-1)
		p.end(f)
		p.start(p.beginNext())
	}()
	p.client.SendInline(sending, c)
	return true
}

// beginAlone begins a flight for one command; it returns nil if the command has to wait.
func (p *Pipeline) beginAlone(ctx context.Context, now time.Time) *flight {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.free(driver.Urgent(ctx)) || p.urgent.first != nil || p.others.first != nil {
		return nil
	}
	p.commands.Add(1)
	return p.begin(now)
}

// enqueue queues c for a flight, and begins one if it may. After it, c's caller calls wait.
func (p *Pipeline) enqueue(ctx context.Context, c *Command) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.push(ctx, c)
	p.start(p.beginNext())
	p.watch()
}

// gather is enqueue for a command of call. It begins no flight before all calls of its group
// have arrived, or findSlow runs.
func (p *Pipeline) gather(ctx context.Context, call *gather.Call, c *Command) {
	p.mu.Lock()
	p.push(ctx, c)
	p.watch()
	p.mu.Unlock()
	call.Arrive(p, p.startAll)
}

// startAll begins flights for all waiting commands, as far as it may.
func (p *Pipeline) startAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := int(p.commands.Load()); n > 0; n -= p.size() {
		p.start(p.beginNext())
	}
}

// push queues c for a flight. The mutex is held.
func (p *Pipeline) push(ctx context.Context, c *Command) {
	c.ctx, c.urgent, c.done = ctx, driver.Urgent(ctx), make(chan struct{})
	p.commands.Add(1)
	p.queueOf(c).push(c)
}

// queueOf returns the queue of c.
func (p *Pipeline) queueOf(c *Command) *queue {
	if c.urgent {
		return &p.urgent
	}
	return &p.others
}

// wait returns once c has its answer or ctx has ended. An error is ctx's: it matches
// driver.ErrNotSent, or is a driver.PendingError.
func (p *Pipeline) wait(ctx context.Context, c *Command, now time.Time) error {
	over := p.expiries.shared(ctx, now)
	defer over.leave()
	select {
	case <-c.done:
		return nil
	case <-bounded.Cancelled(ctx):
	case <-over.done(ctx):
	}
	sending, err := p.leave(c, Ended(ctx))
	if sending != nil && p.client.Left != nil {
		p.client.Left(sending)
	}
	return err
}

// leave takes away c's caller, after its ctx has ended with err. It returns nil if c has its
// answer, and the context of c's flight if it has one.
func (p *Pipeline) leave(c *Command, err error) (sending context.Context, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.answered {
		return nil, nil
	}
	p.commands.Add(-1)
	if c.queued {
		p.queueOf(c).remove(c)
		return nil, driver.NotSent(err)
	}
	f := c.flight
	f.waiting--
	if c.abandon() {
		err = driver.NotSent(err)
		c.late = func(any, error) {} // nobody wants to know
	} else {
		f.sent = true
		err, c.late = driver.NewPendingError(err)
	}
	p.dismiss(f)
	return f.ctx, err
}

// free reports whether a flight may begin. The mutex is held.
func (p *Pipeline) free(urgent bool) bool {
	return len(p.flights) < p.places(urgent) && len(p.flights)-p.slow < p.width()
}

// places is how many flights there may be.
func (p *Pipeline) places(urgent bool) int {
	if urgent {
		return p.client.Connections
	}
	return p.client.Connections - max(p.client.Connections/8, 1)
}

// width is how many flights there may be beside slow ones.
func (p *Pipeline) width() int {
	switch {
	case p.client.Single:
		return p.client.Connections
	case p.commands.Load() > manyCallers:
		return fewFlights
	default:
		return manyFlights
	}
}

// Ended returns ctx.Err(), or context.DeadlineExceeded if the deadline has passed and its timer has
// not fired yet.
func Ended(ctx context.Context) error {
	if at, dated := ctx.Deadline(); dated && !time.Now().Before(at) {
		if err := ctx.Err(); err != nil {
			return err
		}
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
