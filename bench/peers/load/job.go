//go:build unix

package load

import (
	"time"

	"github.com/holdfast-go/holdfast/bench/peers/contender"
	"github.com/holdfast-go/holdfast/bench/peers/stats"
)

// Job is the work of a process's goroutines: acquire, enter the section, leave it, release, and
// again.
type Job struct {
	Contender  string // its name
	Options    contender.Options
	Process    int // its number, from 0
	Goroutines int
	Names      int           // over all processes; with 1, all contend
	Hold       time.Duration // spent in the section
	Away       time.Duration // spent between the release and the next acquire
	WholeCycle bool          // Tally.Times are of whole cycles, not of the acquires alone

	RunIn time.Duration // before the measured time, for connections and caches
	For   time.Duration // the measured time
	Grace time.Duration // how long acquires may take to return after it

	Sections string // the file made by CreateSections
}

// Tally is the result of a Job.
type Tally struct {
	Cycles  []int64          // of each goroutine: cycles ended in the measured time
	Times   *stats.Histogram // of cycles begun in the measured time
	Last    time.Duration    // when the last cycle ended, counted from the first
	Stuck   int              // goroutines still running at the end of Grace
	Errors  int64
	Error   string // the first
	Mallocs uint64 // in the measured time, as are the next two
	Bytes   uint64
	CPU     time.Duration
	// Goroutines is how many ran at most beside those of the Job.
	Goroutines int
}

// Total returns the number of cycles of all goroutines.
func (t *Tally) Total() (n int64) {
	for _, c := range t.Cycles {
		n += c
	}
	return n
}

// add adds the tally of another process.
func (t *Tally) add(other *Tally) {
	t.Cycles = append(t.Cycles, other.Cycles...)
	t.Times.Merge(other.Times)
	t.Last = max(t.Last, other.Last)
	t.Stuck += other.Stuck
	t.Errors += other.Errors
	if t.Error == "" {
		t.Error = other.Error
	}
	t.Mallocs += other.Mallocs
	t.Bytes += other.Bytes
	t.CPU += other.CPU
	t.Goroutines += other.Goroutines
}

// Hooks are called at certain moments of a Job; each may be nil.
type Hooks struct {
	// Ready is called when the contender is open, and returns when to start.
	Ready func() (time.Time, error)
	// Begin and End are called around the measured time.
	Begin, End func()
	// Closing is called when the grace has passed, before the contender is closed.
	Closing func()
}

func (h Hooks) ready() (time.Time, error) {
	if h.Ready == nil {
		return time.Now(), nil
	}
	return h.Ready()
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// until waits for a time.
func until(t time.Time) { <-time.After(time.Until(t)) }
