package resolve

import (
	"container/heap"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// residue is a Residue of a cleaner. The cleaner's mutex guards it.
type residue struct {
	Residue
	began, due time.Time
	tries      int
	answered   bool // a try was answered
	failed     bool // the last try ended with an error
	silent     bool // the last try was not answered
	finalTries int  // number of the next try since Close began: 1, then 2; 0: open

	queue *residueQueue // of the waiting residue; nil if being tried or dropped
	index int           // in the queue
}

// cost returns the cost of the next try.
func (r *residue) cost() int {
	if r.finalTries > 0 {
		return 0
	}
	return cost(r.tries, r.answered, r.Sends.state().present > 0 && !r.failed)
}

// record records the results of a try that began at the mark.
func (r *residue) record(removed bool, err error, before Mark) {
	r.tries++
	r.answered = r.answered || err == nil
	r.failed, r.silent = err != nil, err != nil && driver.CodeOf(err) == ""
	switch {
	case err != nil:
	case removed:
		r.Sends.Executed()
	default:
		r.Sends.RemovedSince(before)
	}
}

// isOver reports whether the clean-up ends after a try with the result err: nothing can be left,
// its time is over, or nothing can be sent any more.
func (r *residue) isOver(err error, now time.Time) bool {
	closed := errors.Is(err, driver.ErrClosed) || errors.Is(err, driver.ErrNotSent) &&
		errors.Is(err, driver.ErrPermanent)
	return r.Sends.Settled() || !now.Before(r.Until) || closed || r.finalTries > 1 || r.finalTries == 1 && err != nil
}

// schedule sets the time of the next try after one with the result err.
func (r *residue) schedule(err error, now time.Time, closing bool) {
	r.due = now
	switch {
	case closing:
		if r.finalTries > 0 { // an earlier command may be executed after the try, or be answered late
			r.due = now.Add(finalAnswerWait)
		}
		r.finalTries++
	case r.Sends.state().present == 0 || err != nil:
		r.due = now.Add(pause(r.tries, now.Sub(r.began)))
		if r.due.After(r.Until) {
			r.due = r.Until
		}
	}
}

// residueQueue holds residues by when they are due.
type residueQueue []*residue

func (q *residueQueue) put(r *residue) { heap.Push(q, r) }

func (q *residueQueue) remove(r *residue) { heap.Remove(q, r.index) }

// Len implements heap.Interface.
func (q *residueQueue) Len() int { return len(*q) }

// Less implements heap.Interface.
func (q *residueQueue) Less(i, j int) bool { return (*q)[i].due.Before((*q)[j].due) }

// Swap implements heap.Interface.
func (q *residueQueue) Swap(i, j int) {
	(*q)[i], (*q)[j] = (*q)[j], (*q)[i]
	(*q)[i].index, (*q)[j].index = i, j
}

// Push implements heap.Interface.
func (q *residueQueue) Push(v any) {
	r := v.(*residue) //nolint:errcheck // nothing else is put in
	r.queue, r.index = q, len(*q)
	*q = append(*q, r)
}

// Pop implements heap.Interface.
func (q *residueQueue) Pop() any {
	n := len(*q) - 1
	r := (*q)[n]
	(*q)[n] = nil
	*q = (*q)[:n]
	r.queue = nil
	return r
}
