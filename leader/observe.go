package leader

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// Leader is the leader of a name. The zero Leader means that nobody leads.
type Leader struct {
	// Note is the leader's Config.Note. Middleware may append to it, as middleware/tracing does.
	Note string
	// Term is the number of its term. In a quorum it may be higher than the term passed to Lead,
	// since a server joining later mints a number too.
	Term int64
}

// Observe yields who leads name: now, and after each change, until ctx ends or the loop is left. It
// polls with locker.Watch, every interval (default: 1 s) and when the leader's lease ends. It
// starts no goroutine. A term that begins and ends between two polls is not seen. The terms yielded
// increase, unless the server loses its data.
//
// Errors are those of locker.Watch: if a poll fails, Observe yields the error once, with the last
// known Leader, and polls on, unless another attempt would only repeat the error. The Leader may be
// out of date: use it to find the leader, not to decide who may write.
func Observe(ctx context.Context, l locker.Locker, name string, interval time.Duration) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var v view
		for state, err := range locker.Watch(ctx, l, name, interval) {
			if v.update(state, err) && !yield(v.leader, err) {
				return
			}
		}
	}
}

// view is an observer's knowledge. The zero view knows nothing.
type view struct {
	leader Leader
	owner  string // of the leader's hold; "": unknown
	known  bool   // the last State was that of leader
}

// update records a result of Watch, and reports whether to yield.
func (v *view) update(state locker.State, err error) bool {
	if err != nil {
		v.known = false
		return true
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
