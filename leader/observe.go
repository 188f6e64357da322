package leader

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Leader says who leads. The zero Leader: nobody.
type Leader struct {
	// Note is the leader's Config.Note. Behind it may be what middleware adds, as
	// middleware/tracing does.
	Note string
	// Term is the number of its term. In a quorum it may be higher than what Lead got, since a
	// server that joins later mints a number too.
	Term int64
}

// defaultInterval is the default of Observe.
const defaultInterval = time.Second

// Observe yields who leads name: now, and after each change, until ctx ends or the loop is left. It
// asks with locker.Inspect, every interval (default: 1 s) and when the leader's lease ends, in the
// goroutine of the loop; nothing goes on beside the loop. Terms that begin and end between two
// looks are not seen. The terms it yields increase, but for those of a server that lost its data.
//
// If it cannot ask, it yields the error once, with the Leader it knew last, and then who leads as
// soon as it can ask again. It ends after an error that another attempt would only repeat:
// locker.ErrInvalid, errors.ErrUnsupported (l has no locker.Inspector), locker.ErrClosed, a missing
// permission. What it yields may be outdated: it is for finding the leader, and does not decide who
// may write.
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
			sleep(ctx, nextLook(state, interval))
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

// nextLook returns how long to wait after a look that found state.
func nextLook(state locker.State, interval time.Duration) time.Duration {
	if state.Held && state.Left > 0 {
		return min(interval, state.Left+time.Millisecond)
	}
	return interval
}

// view is what an observer knows. The zero view knows nothing.
type view struct {
	leader Leader
	owner  string // of the leader's hold; "": unknown
	known  bool   // leader was seen at the last look
	failed bool   // the last look failed
}

// update takes in what a look found, and reports whether to yield.
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
	// A Candidate's owner is another one in each term, so that one that stays means the same term.
	if v.owner != "" && state.Owner == v.owner && now.Note == v.leader.Note {
		now.Term = v.leader.Term
	}
	changed := !v.known || now != v.leader
	*v = view{leader: now, owner: state.Owner, known: true}
	return changed
}
