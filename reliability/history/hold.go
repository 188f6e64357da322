package history

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// Hold is a Lock with recorded calls. Only the goroutine of its Client may use it.
type Hold struct {
	*locker.Lock
	c     *Client
	id    string
	owner string
}

// event returns an event of this hold with the present state of the Lock.
func (h *Hold) event(kind Kind) Event {
	return Event{
		Name: h.Name(), Kind: kind, Hold: h.id, Owner: h.owner, Shared: h.Mode() == locker.Shared,
		Deadline: h.c.r.At(h.Deadline()), Fence: h.Fence(),
	}
}

func (h *Hold) begin(kind Kind) Event { return h.started(h.c.begin(h.event(kind))) }

// started adds the Deadline, read after the time of the call.
func (h *Hold) started(e Event) Event {
	e.Before = h.c.r.At(h.Deadline())
	return e
}

func (h *Hold) end(e Event, err error) error {
	e.Deadline, e.Fence = h.c.r.At(h.Deadline()), h.Fence()
	h.c.end(e, err)
	return err
}

// Held reports whether the Lock reports itself held, and records it if so, for one instant before
// the Deadline.
func (h *Hold) Held() bool {
	from := time.Now()
	e := h.event(Held) // read before Err
	ended := h.Err()
	e.Call, e.Return, e.Outcome = h.c.r.At(from), min(h.c.r.Now(), e.Deadline), OK
	if ended != nil || e.Return < e.Call {
		return false
	}
	h.c.r.Add(h.c.numbered(e))
	return true
}

// Renew renews for ttl.
func (h *Hold) Renew(ctx context.Context, ttl time.Duration) error {
	e := h.event(Renew)
	e.TTL = ttl
	e = h.started(h.c.begin(e))
	return h.end(e, h.Lock.Renew(ctx, ttl))
}

// Release releases.
func (h *Hold) Release(ctx context.Context) error {
	e := h.begin(Release)
	return h.end(e, h.Lock.Release(ctx))
}

// Downgrade converts from writer to reader.
func (h *Hold) Downgrade(ctx context.Context) error {
	e := h.begin(Downgrade)
	err := h.Lock.Downgrade(ctx)
	if OutcomeOf(err) == Unsettled && h.Mode() == locker.Exclusive {
		// After an unknown outcome the Lock would report Shared: this outcome is known.
		e.Return, e.Outcome, e.Error = h.c.r.Now(), Failed, err.Error()
		h.c.r.Add(e)
		return err
	}
	return h.end(e, err)
}

// Upgrade makes a writer of a reader.
func (h *Hold) Upgrade(ctx context.Context) error {
	e := h.begin(Upgrade)
	return h.end(e, h.Lock.Upgrade(ctx))
}

// Abandon records that the holder does nothing more with the Lock.
func (h *Hold) Abandon() {
	e := h.begin(Abandon)
	_ = h.end(e, nil)
}

var errRejected = errors.New("a higher fencing token was seen")

// Write writes with the Lock's fencing token. accept is [Store.Accept], or calls one in another
// process.
func (h *Hold) Write(accept func(name string, fence int64) (bool, error)) error {
	e := h.begin(Write)
	accepted, err := accept(e.Name, e.Fence)
	e.Return = h.c.r.Now()
	switch {
	case err != nil:
		e.Outcome, e.Error = Unsettled, err.Error()
	case accepted:
		e.Outcome = OK
	default:
		e.Outcome, err = Refused, errRejected
	}
	h.c.r.Add(e)
	return err
}
