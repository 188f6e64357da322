package redlock

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// contended returns how many refusals name a holder.
func (t *nodeAnswers) contended() (n int) {
	for _, err := range t.refused {
		if errors.Is(err, locker.ErrNotAcquired) {
			n++
		}
	}
	return n
}

// contention reports that others hold the lock at so many nodes that there was no quorum. It names
// the holder that most nodes name, and a channel of that holder's.
func (t *nodeAnswers) contention(name string, quorum int, jitter time.Duration) *locker.ContentionError {
	type holder struct{ owner, note string }
	report := &locker.ContentionError{Name: name, Jitter: jitter}
	votes, most := map[holder]int{}, 0
	first := map[holder]*locker.ContentionError{} // the first node that has a channel, so that all waiters use the same
	var left, retryAfter []time.Duration
	for _, err := range t.refused {
		at, ok := errors.AsType[*locker.ContentionError](err)
		if !ok {
			continue
		}
		who := holder{at.Owner, at.Note}
		if votes[who]++; votes[who] > most {
			most, report.Owner, report.Note = votes[who], at.Owner, at.Note
		}
		if first[who] == nil && !at.Channel.IsZero() {
			first[who] = at
		}
		left, retryAfter = append(left, at.Left), append(retryAfter, at.RetryAfter)
		report.Ordered = report.Ordered || at.Ordered
	}
	if at := first[holder{report.Owner, report.Note}]; at != nil {
		report.Channel = at.Channel
	}
	missing := quorum - t.done
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
