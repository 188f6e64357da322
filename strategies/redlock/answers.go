package redlock

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// nodeAnswers are the nodes' answers to one operation so far.
type nodeAnswers struct {
	name   string        // of the lock
	jitter time.Duration // for waiters
	nodes  int
	quorum int

	done    int
	pending int          // nodes without an answer
	refused []error      // answers, not failures: held by another, or no longer held
	absent  []*NodeError // nodes that failed before, and no longer hold the lock
	failed  []*NodeError // nodes with a failure or without an answer
}

// answersFor returns the nodeAnswers of an operation on a lock, still empty.
func (l *Locker) answersFor(name string) *nodeAnswers {
	return &nodeAnswers{name: name, jitter: l.cfg.WakeJitter, nodes: len(l.nodes), quorum: l.quorum}
}

// add adds a node's answer. errUnanswered stands for none. If refused is set, err is an answer and
// no failure.
func (t *nodeAnswers) add(n *quorumNode, err error, refused bool) {
	switch {
	case err == nil:
		t.done++
	case refused:
		t.refused = append(t.refused, err)
	default:
		if errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrNotHeld) {
			err = errors.New(err.Error()) // only the error of the whole operation matches these
		}
		if err == errUnanswered { //nolint:errorlint // set by this package itself
			t.pending++
		}
		t.failed = append(t.failed, n.error(err))
	}
}

// unsupported reports whether too few nodes for a quorum may support the operation, or none did it
// and all failures match errors.ErrUnsupported.
func (t *nodeAnswers) unsupported() bool {
	n := 0
	for _, e := range t.failed {
		if errors.Is(e, errors.ErrUnsupported) {
			n++
		}
	}
	return n > t.nodes-t.quorum || n > 0 && t.done == 0 && n == len(t.failed)
}

// quorumError returns the error of an operation whose quorum was missed because nodes failed.
func (t *nodeAnswers) quorumError() *QuorumError {
	e := &QuorumError{
		Done: t.done, Refused: len(t.refused) - len(t.absent), Of: t.nodes, Needed: t.quorum,
		Nodes: slices.Concat(t.failed, t.absent),
	}
	slices.SortFunc(e.Nodes, func(a, b *NodeError) int { return a.Node - b.Node })
	var lasting, others, unanswered []error
	for _, f := range t.failed {
		switch {
		case f.Err == errUnanswered: //nolint:errorlint // set by this package itself
			unanswered = append(unanswered, f)
		case driver.Transient(f.Err):
			others = append(others, f)
		default:
			lasting = append(lasting, f)
		}
	}
	others = append(others, unanswered...) // the most informative come first
	e.decisive = others
	if len(lasting) > t.nodes-t.quorum || len(others)+len(t.refused) == 0 {
		e.decisive = lasting
	}
	return e
}

// contended returns how many refusals name a holder.
func (t *nodeAnswers) contended() (n int) {
	for _, err := range t.refused {
		if errors.Is(err, locker.ErrNotAcquired) {
			n++
		}
	}
	return n
}

// contention returns the error of an operation that missed the quorum because of other holders. It
// names the holder named by most nodes, and one of that holder's channels.
func (t *nodeAnswers) contention() *locker.ContentionError {
	type holder struct {
		owner, note string
		released    bool
	}
	report := &locker.ContentionError{Name: t.name, Hint: lease.Hint{Jitter: t.jitter}}
	votes, most := map[holder]int{}, 0
	first := map[holder]*locker.ContentionError{} // the first with a channel, so all waiters use the same
	var left, retryAfter []time.Duration
	for _, err := range t.refused {
		at, ok := errors.AsType[*locker.ContentionError](err)
		if !ok {
			continue
		}
		who := holder{at.Owner, at.Note, at.Released}
		if votes[who]++; votes[who] > most {
			most, report.Owner, report.Note, report.Released = votes[who], at.Owner, at.Note, at.Released
		}
		if first[who] == nil && !at.Channel.IsZero() {
			first[who] = at
		}
		left, retryAfter = append(left, at.Left), append(retryAfter, at.RetryAfter)
	}
	if at := first[holder{report.Owner, report.Note, report.Released}]; at != nil {
		report.Channel = at.Channel
	}
	missing := t.quorum - t.done
	report.Left, report.RetryAfter = kthShortest(left, missing), kthShortest(retryAfter, missing)
	return report
}

// kthShortest returns the k-th shortest of the durations: by then k leases have ended. Durations of
// zero are unknown, and come last; the result is zero if the k-th is unknown.
func kthShortest(all []time.Duration, k int) time.Duration {
	known := slices.DeleteFunc(slices.Clone(all), func(d time.Duration) bool { return d <= 0 })
	if k < 1 || k > len(known) {
		return 0
	}
	slices.Sort(known)
	return known[k-1]
}

// acquireVerdict returns why an acquire missed the quorum. mayChange reports whether missing
// answers might change it.
func (t *nodeAnswers) acquireVerdict() (err error, mayChange bool) { //nolint:revive // the error is what it returns
	refused := len(t.refused)
	outOfReach := t.done+t.pending < t.quorum
	// Would the lock have been acquired without the other holders? If nothing has failed, only they
	// prevented it.
	if refused > 0 && (t.done+refused >= t.quorum || outOfReach && len(t.failed) == t.pending) {
		return t.contention(), false
	}
	return t.quorumError(), refused > 0 && t.done+refused+t.pending >= t.quorum
}

// resumeVerdict is acquireVerdict for a resume. tookOver reports whether a node has granted its
// lock.
func (t *nodeAnswers) resumeVerdict(tookOver bool) (err error, mayChange bool) { //nolint:revive // the error is what it returns
	refused, spare := len(t.refused), t.nodes-t.quorum
	if refused > spare && !tookOver {
		return locker.ErrNotHeld, false
	}
	err = t.quorumError()
	if tookOver || t.pending > 0 {
		err = fmt.Errorf("%w: %w; the resume is undone", locker.ErrUnknownOutcome, err)
	}
	return err, !tookOver && refused+t.pending > spare
}

// upgradeVerdict returns the error of a failed upgrade; missed is the result of quorumState.missed.
// The upgrade was refused if it would have succeeded without the other holders.
func (t *nodeAnswers) upgradeVerdict(missed error) error {
	refused := t.contended()
	switch {
	case errors.Is(missed, locker.ErrNotHeld):
		return missed
	case refused > 0 && t.done+refused >= t.quorum:
		return t.contention()
	case t.done >= t.quorum:
		return fmt.Errorf("the upgraded nodes did not stay exclusive until the Deadline: %w", missed)
	}
	return missed
}

// releaseVerdict returns the error of a release, or nil if a quorum has released. The lock is lost
// if too few nodes held it; a node without an answer may have.
func (t *nodeAnswers) releaseVerdict() error {
	missed := t.quorumError()
	switch {
	case t.done >= t.quorum:
		return nil
	case t.done+len(t.failed) < t.quorum:
		return fmt.Errorf("%w: %d of %d nodes held it, %d needed%s", locker.ErrLost, t.done, t.nodes, t.quorum,
			listed(missed.Nodes))
	case t.pending > 0:
		return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, missed)
	default:
		return missed
	}
}
