package leader

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Leader is who leads. The zero Leader means that nobody does.
type Leader struct {
	// Note is the leader's Config.Note. Middleware may append to it, as middleware/tracing does.
	Note string
	// Term is the number of its term. In a quorum it may be higher than the one that Lead was
	// called with, since a server that joins later mints a number too.
	Term int64
}

// defaultInterval is the default of Observe.
const defaultInterval = time.Second

// Observe yields who leads name: now, and after each change, until ctx ends or the loop is left. It
// polls with locker.Inspect, every interval (default: 1 s) and when the leader's lease ends. It
// starts no goroutine. A term that begins and ends between two polls is not seen. The terms that
// Observe yields increase, unless the server loses its data.
//
// If a poll fails, Observe yields the error once, with the last known Leader. It polls on, and
// yields who leads as soon as a poll succeeds. It ends after an error that another attempt would
// only repeat: locker.ErrInvalid, errors.ErrUnsupported (l has no locker.Inspector),
// locker.ErrClosed, a missing permission. What it yields may be out of date: use it to find the
// leader, not to decide who may write.
func Observe(ctx context.Context, l locker.Locker, name string, interval time.Duration) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if err := checkObserve(ctx, interval); err != nil {
			yield(Leader{}, err)
			return
		}
		if interval == 0 {
			interval = defaultInterval
		}
		var v view
		for ctx.Err() == nil {
			state, err := locker.Inspect(ctx, l, name)
			if ctx.Err() != nil {
				return
			}
			if v.update(state, err) && !yield(v.leader, err) {
				return
			}
			if err != nil && !driver.Transient(err) {
				return
			}
			sleep(ctx, untilPoll(state, interval))
		}
	}
}

func checkObserve(ctx context.Context, interval time.Duration) error {
	switch {
	case ctx == nil:
		return driver.NilContext("Observe ctx")
	case interval < 0:
		return driver.Invalid("Observe interval", interval.String(), "a positive duration, or 0 for 1s")
	}
	return nil
}

// untilPoll returns how long to wait for the next poll after one that found state.
func untilPoll(state locker.State, interval time.Duration) time.Duration {
	if state.Held && state.Left > 0 {
		return min(interval, state.Left+time.Millisecond)
	}
	return interval
}

// view is what an observer knows. The zero view knows nothing.
type view struct {
	leader Leader
	owner  string // of the leader's hold; "": unknown
	known  bool   // the last poll returned leader
	failed bool   // the last poll failed
}

// update records the result of a poll, and reports whether to yield.
func (v *view) update(state locker.State, err error) bool {
	if err != nil {
		first := !v.failed || !driver.Transient(err)
		v.failed, v.known = true, false
		return first
	}
	var now Leader
	if state.Held {
		now = Leader{state.Note, state.Fence}
	}
	// A Candidate has another owner in each term, so the same owner means the same term.
	if v.owner != "" && state.Owner == v.owner && now.Note == v.leader.Note {
		now.Term = v.leader.Term
	}
	changed := !v.known || now != v.leader
	*v = view{leader: now, owner: state.Owner, known: true}
	return changed
}
