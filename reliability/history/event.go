package history

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// Kind is the kind of a client's call.
type Kind string

// The kinds of events.
const (
	Acquire   Kind = "acquire"
	Resume    Kind = "resume"    // take over the hold Over; the result is a new hold
	Held      Kind = "held"      // the client found Err nil and the Deadline in the future
	Renew     Kind = "renew"     //
	Release   Kind = "release"   //
	Downgrade Kind = "downgrade" // from writer to reader
	Upgrade   Kind = "upgrade"   // from reader to writer
	Write     Kind = "write"     // to the fenced store
	Abandon   Kind = "abandon"   // the holder does nothing more: it lets the lease end, or died
	Lose      Kind = "lose"      // from Call to Return a server may lose its state
	Note      Kind = "note"      // shown in the picture, such as a fault; not checked
)

// Outcome is the answer to the client.
type Outcome string

// The outcomes.
const (
	Pending   Outcome = ""          // no answer yet
	OK        Outcome = "ok"        //
	Refused   Outcome = "refused"   // held by another; of a Write: a higher fencing token was seen
	Lost      Outcome = "lost"      // the hold had ended
	Failed    Outcome = "failed"    // of a Downgrade: the server refused it
	Unsettled Outcome = "unsettled" // any other error: it may have taken effect, now or later
)

// OutcomeOf returns the outcome of a lock's call with the error err.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, locker.ErrNotAcquired):
		return Refused
	case errors.Is(err, locker.ErrNotHeld):
		return Lost
	}
	return Unsettled
}

// Event is one call of a client and its answer. Times are nanoseconds on one clock for all clients
// of a history.
type Event struct {
	// ID names the event. A call is recorded when it begins and again, with the same ID, when it
	// ends: the later event counts. So a call is known even if its process dies.
	ID      string  `json:"id"`
	Client  int     `json:"client"`
	Name    string  `json:"name"` // of the lock; of Lose: empty for all
	Kind    Kind    `json:"kind"`
	Outcome Outcome `json:"outcome"`
	Call    int64   `json:"call"`
	Return  int64   `json:"return"`
	// Hold names the hold, by the ID of its acquire or resume.
	Hold    string        `json:"hold,omitempty"`
	Over    string        `json:"over,omitempty"` // of Resume: the hold to take over
	Owner   string        `json:"owner,omitempty"`
	Shared  bool          `json:"shared,omitempty"`  // the requested mode
	TTL     time.Duration `json:"ttl,omitempty"`     // of Acquire, Resume and Renew: as requested
	Permits int           `json:"permits,omitempty"` // of Acquire of a semaphore: as requested; 0: one
	MinHold time.Duration `json:"minHold,omitempty"` // of Acquire: as requested
	Fenced  bool          `json:"fenced,omitempty"`  // of Acquire: a fencing token was requested
	NoWait  bool          `json:"noWait,omitempty"`  // of Acquire: its client does not wait
	Open    bool          `json:"open,omitempty"`    // of Acquire: the outcome of one of its attempts was unknown; of a quorum, not at one node alone
	From    string        `json:"from,omitempty"`    // of Acquire: Owner of the hold handed over to it
	Resent  bool          `json:"resent,omitempty"`  // of Acquire: one of its attempts sent more than one command
	// Fence is the fencing token received, or of a Write the one used; 0: none.
	Fence int64 `json:"fence,omitempty"`
	// Deadline is the Lock's after the call; 0: there was no Lock.
	Deadline int64 `json:"deadline,omitempty"`
	// Before is the Lock's Deadline at some time during the call; 0: unknown.
	Before int64  `json:"before,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Settle returns one event for each ID, in the order of the calls. At the time at, each pending call
// ends unsettled, since its client has died, and each hold without an end is abandoned.
func Settle(events []Event, at int64) []Event {
	last := map[string]int{}
	var out []Event
	for _, e := range events {
		if i, ok := last[e.ID]; ok {
			out[i] = e
			continue
		}
		last[e.ID] = len(out)
		out = append(out, e)
	}
	ended := map[string]bool{}
	for i := range out {
		e := &out[i]
		if e.Outcome == Pending {
			e.Outcome, e.Return, e.Error = Unsettled, max(at, e.Call), "no answer: the client is gone"
		}
		if e.Kind == Release || e.Kind == Abandon {
			ended[e.Hold] = true
		}
	}
	for _, e := range out {
		if e.begins() && !ended[e.Hold] {
			gone := Event{ID: e.ID + "/gone", Client: e.Client, Name: e.Name, Kind: Abandon, Outcome: OK, Hold: e.Hold, Owner: e.Owner}
			gone.Call, gone.Return = max(at, e.Return), max(at, e.Return)
			out = append(out, gone)
		}
	}
	slices.SortStableFunc(out, func(a, b Event) int { return cmp.Compare(a.Call, b.Call) })
	return out
}

// begins reports whether the event began a hold.
func (e Event) begins() bool { return (e.Kind == Acquire || e.Kind == Resume) && e.Outcome == OK }

// never is later than every event.
const never = math.MaxInt64 / 4
