package resolve

import (
	"container/heap"
	"time"
)

// residue is a Residue in the hands of a cleaner, whose mutex guards it.
type residue struct {
	Residue
	began, due time.Time
	tries      int
	answered   bool // a try was answered
	failed     bool // the last try ended with an error
	silent     bool // the last try was not answered
	finalTries int  // which try since the driver began to close is next: 1, then 2; 0: it is open

	queue *queue // that it waits in; nil while it is tried, and when it is dropped
	index int    // in the queue
}

// cost is that of the next try.
func (r *residue) cost() int {
	if r.finalTries > 0 {
		return 0
	}
	return cost(r.tries, r.answered, r.Sends.state().present > 0 && !r.failed)
}

// queue holds residues by when they are due.
type queue []*residue

func (q *queue) put(r *residue) { heap.Push(q, r) }

func (q *queue) remove(r *residue) { heap.Remove(q, r.index) }

// Len implements heap.Interface.
func (q *queue) Len() int { return len(*q) }

// Less implements heap.Interface.
func (q *queue) Less(i, j int) bool { return (*q)[i].due.Before((*q)[j].due) }

// Swap implements heap.Interface.
func (q *queue) Swap(i, j int) {
	(*q)[i], (*q)[j] = (*q)[j], (*q)[i]
	(*q)[i].index, (*q)[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(v any) {
	r := v.(*residue) //nolint:errcheck // nothing else is put in
	r.queue, r.index = q, len(*q)
	*q = append(*q, r)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	n := len(*q) - 1
	r := (*q)[n]
	(*q)[n] = nil
	*q = (*q)[:n]
	r.queue = nil
	return r
}
