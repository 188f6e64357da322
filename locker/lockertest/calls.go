package lockertest

import (
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// maxCalls is how many calls a Locker remembers.
const maxCalls = 1000

// Call is a call of a Locker, and its outcome.
type Call struct {
	// Op is "acquire", "resume", "renew", "release", "upgrade", "downgrade" or "break", as in
	// locker.OpError.
	Op string
	// Request is the request of an acquire or a resume, as it arrived at the Locker. For the other
	// operations only some fields are set: Name, Mode (the lock's, or the target of a conversion),
	// Owner, and TTL for a renewal.
	Request locker.Request
	// At is when the call arrived.
	At time.Time
	// Took is the time until its outcome.
	Took time.Duration
	// Err is the outcome: nil if the call succeeded, else the error without its locker.OpError.
	Err error
}

// String returns the operation, the name of the lock and the outcome, such as
// `acquire "report": ok`.
func (c Call) String() string {
	outcome := "ok"
	if c.Err != nil {
		outcome = c.Err.Error()
	}
	return c.Op + " " + strconv.Quote(c.Request.Name) + ": " + outcome
}

// Calls returns the calls whose outcome is known, in the order of their outcomes: the latest 1,000
// at most. Renewals by the watchdog and each attempt of middleware/retry are calls of their own.
//
// A refusal by the Lock itself, such as of a second Release, sends nothing and is not recorded.
// Neither are Inspect, called again and again by locker.Watch and leader.Observe, and operations on
// the Locks of Hold.
func (l *Locker) Calls() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls[max(0, len(l.calls)-maxCalls):])
}

// record returns the function that records the outcome of c.
func (l *Locker) record(c Call) (done func(error)) {
	c.At = time.Now()
	return func(err error) {
		c.Took, c.Err = time.Since(c.At), err
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.calls) >= 2*maxCalls { // so few calls copy
			l.calls = slices.Delete(l.calls, 0, maxCalls)
		}
		l.calls = append(l.calls, c)
	}
}

// record returns the function that records the outcome of op.
func (h *hold) record(op lease.Op) (done func(error)) {
	c := Call{Op: "release", Request: locker.Request{Name: h.name, Owner: h.owner}}
	switch op.Kind {
	case lease.OpRenew:
		c.Op, c.Request.TTL = "renew", op.TTL
	case lease.OpConvert:
		if c.Op = "upgrade"; op.Mode == locker.Shared {
			c.Op = "downgrade"
		}
	case lease.OpRelease:
	default: // for strategies and middleware
		return func(error) {}
	}
	h.locks.mu.Lock()
	c.Request.Mode = h.mode
	unrecorded := h.unrecorded
	h.locks.mu.Unlock()
	if unrecorded {
		return func(error) {}
	}
	if op.Kind == lease.OpConvert {
		c.Request.Mode = op.Mode
	}
	return h.locks.record(c)
}
