package history

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// Recorder records the calls of its clients. It is safe for concurrent use.
type Recorder struct {
	epoch time.Time
	sink  func(Event)

	mu     sync.Mutex
	events []Event
}

// NewRecorder returns a Recorder with a clock that counts from epoch. A sink is called with each
// event, from any goroutine, and twice for a call (see [Event.ID]). If it is nil, the Recorder
// keeps the events.
func NewRecorder(epoch time.Time, sink func(Event)) *Recorder {
	return &Recorder{epoch: epoch, sink: sink}
}

// At returns t by the Recorder's clock. The zero time (the Deadline of a lease without an end) is
// later than all others.
func (r *Recorder) At(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
	return int64(t.Sub(r.epoch))
}

// Now returns the time by the Recorder's clock.
func (r *Recorder) Now() int64 { return r.At(time.Now()) }

// Add records an event.
func (r *Recorder) Add(e Event) {
	if r.sink != nil {
		r.sink(e)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns the kept events.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

// Lose records that the server of a name may lose its state between two times. An empty name means
// all names.
func (r *Recorder) Lose(name string, from, to int64) {
	r.Add(Event{ID: fmt.Sprintf("lose/%s/%d", name, from), Client: -1, Name: name, Kind: Lose, Outcome: OK, Call: from, Return: to})
}

// Note records an event of all names between two times, for the picture.
func (r *Recorder) Note(text string, from, to int64) {
	r.Add(Event{ID: fmt.Sprintf("note/%s/%d", text, from), Client: -1, Kind: Note, Outcome: OK, Call: from, Return: to, Error: text})
}

// Client returns a client for one call at a time. Its number must be unique in the history.
func (r *Recorder) Client(number int) *Client { return &Client{r: r, number: number} }

// Client records the calls of one goroutine.
type Client struct {
	r      *Recorder
	number int
	calls  int
}

// numbered gives an event of this client its ID.
func (c *Client) numbered(e Event) Event {
	c.calls++
	e.ID = fmt.Sprintf("%d/%d", c.number, c.calls)
	e.Client = c.number
	if e.Kind == Acquire || e.Kind == Resume {
		e.Hold = e.ID
	}
	return e
}

// begin records the begin of a call.
func (c *Client) begin(e Event) Event {
	e = c.numbered(e)
	e.Call = c.r.Now()
	c.r.Add(e)
	return e
}

// end records the answer of a call.
func (c *Client) end(e Event, err error) {
	e.Return = c.r.Now()
	e.Outcome = OutcomeOf(err)
	if err != nil {
		e.Error = err.Error()
	}
	c.r.Add(e)
}

// Acquire acquires through l. Request.TTL must be set: the check needs it.
func (c *Client) Acquire(ctx context.Context, l locker.Locker, req locker.Request) (*Hold, error) {
	e := c.begin(Event{
		Name: req.Name, Kind: Acquire, Owner: req.Owner, Shared: req.Mode == locker.Shared, TTL: req.TTL, Permits: req.Permits,
		MinHold: req.MinHold.Truncate(time.Millisecond), Fenced: req.Fenced, NoWait: req.NoWait,
	})
	var open, resent atomic.Bool
	var from atomic.Pointer[string]
	lock, err := l.Acquire(locktrace.With(ctx, &locktrace.Trace{Woken: func(_ context.Context, info locktrace.WokenInfo) {
		switch {
		case info.Name != req.Name: // another lock acquired by l
		case info.By == locktrace.ByHandOver:
			from.Store(&info.From)
		case from.Swap(nil) != nil:
			open.Store(true)
		}
	}, Attempt: func(_ context.Context, info locktrace.AttemptInfo) {
		if info.Name != req.Name {
			return
		}
		// A hold handed over and not returned is released in the background.
		if from.Swap(nil) != nil || !info.AtNode && errors.Is(info.Err, locker.ErrUnknownOutcome) {
			open.Store(true)
		}
		if info.Sends > 1 {
			resent.Store(true)
		}
	}}), req)
	if owner := from.Load(); owner != nil {
		e.From = *owner
	}
	e.Open, e.Resent = open.Load() || err != nil && e.From != "", resent.Load()
	if err != nil {
		c.end(e, err)
		return nil, err
	}
	e.Deadline, e.Fence = c.r.At(lock.Deadline()), lock.Fence()
	if e.Owner == "" {
		e.Owner = lock.Owner()
	}
	c.end(e, nil)
	return &Hold{Lock: lock, c: c, id: e.Hold, owner: e.Owner}, nil
}
