package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/locker"
)

func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON, one value per line")
}

// lockState is the state of a lock with the strategy of its key, as strategy_of returns it; "": the
// strategy is unknown.
type lockState struct {
	locker.State

	strategy string
}

// lockJSON is a lock in JSON. Times are in seconds.
type lockJSON struct {
	Name     string  `json:"name"`
	Held     bool    `json:"held"`
	Strategy string  `json:"strategy,omitempty"`
	Library  string  `json:"library,omitempty"` // whose strings look like this one
	Mode     string  `json:"mode,omitempty"`
	Owner    string  `json:"owner,omitempty"`
	Note     string  `json:"note,omitempty"`
	Holds    int     `json:"holds,omitempty"`
	Left     float64 `json:"left,omitempty"`
	Released bool    `json:"released,omitempty"`
	Fence    int64   `json:"fence,omitempty"`
	Permits  int     `json:"permits,omitempty"`
	Free     *int    `json:"free,omitempty"` // of a semaphore
	Waiters  int     `json:"waiters"`        // -1: not known

	Nodes     []string `json:"nodes,omitempty"`     // of a quorum: those holding it
	Undecided bool     `json:"undecided,omitempty"` // too few nodes of a quorum answered: Held is not known
}

func newLockJSON(name string, s lockState) lockJSON {
	j := lockJSON{
		Name: strings.ToValidUTF8(name, "\uFFFD"), Held: s.Held, Fence: s.Fence, Permits: s.Permits, Waiters: s.Waiters,
	}
	if s.Permits > 0 {
		j.Free = &s.Free
	}
	if s.Held {
		j.Mode, j.Owner, j.Note, j.Holds, j.Left = s.Mode.String(), s.Owner, s.Note, s.Holds, s.Left.Seconds()
		j.Released = s.Holds == 0
		if isString(s.strategy) {
			j.Library = s.library()
		} else {
			j.Strategy = s.strategy
		}
	}
	return j
}

// printState prints who holds a lock.
func printState(w io.Writer, name string, s lockState, asJSON bool) error {
	if asJSON {
		return printJSON(w, newLockJSON(name, s))
	}
	_, err := fmt.Fprintf(w, "%s  %s\n", printable(name), describe(s))
	return printed(err)
}

// printEnded prints the holds ended by release: the state of the lock before. Another may hold it
// by now.
func printEnded(w io.Writer, name string, before lockState, asJSON bool) error {
	if asJSON {
		return printJSON(w, struct {
			Name  string   `json:"name"`
			Ended lockJSON `json:"ended"`
		}{strings.ToValidUTF8(name, "\uFFFD"), newLockJSON(name, before)})
	}
	ended := describe(before)
	if before.Holds == 0 {
		ended = "a minimum hold that kept it taken" + waiting(before) + fence(before)
	}
	_, err := fmt.Fprintf(w, "%s  ended: %s\n", printable(name), ended)
	return printed(err)
}

// describe says in words who holds a lock.
func describe(s lockState) string {
	if !s.Held {
		return "free" + waiting(s) + fence(s)
	}
	var b strings.Builder
	left := "without end"
	if s.Left > 0 {
		left = s.Left.Round(100*time.Millisecond).String() + " left"
	}
	switch {
	case s.Holds == 0:
		return fmt.Sprintf("released, but its minimum hold keeps it taken, %s%s%s%s", left, waiting(s), strategy(s), fence(s))
	case s.Permits > 0:
		fmt.Fprintf(&b, "%d of %d permits held in %d holds", s.Permits-s.Free, s.Permits, s.Holds)
	case s.Holds > 1:
		fmt.Fprintf(&b, "held %s, %d holds", s.Mode, s.Holds)
	default:
		fmt.Fprintf(&b, "held %s", s.Mode)
	}
	fmt.Fprintf(&b, ", %s%s%s", left, waiting(s), strategy(s))
	if s.Owner != "" {
		fmt.Fprintf(&b, ", owner %s", printable(s.Owner))
	}
	if s.Note != "" {
		fmt.Fprintf(&b, ", note %q", s.Note)
	}
	return b.String() + fence(s)
}

// waiting says how many processes wait.
func waiting(s lockState) string {
	if s.Waiters <= 0 {
		return ""
	}
	return fmt.Sprintf(", %d waiting", s.Waiters)
}

// strategy names the strategy of a lock.
func strategy(s lockState) string {
	switch {
	case s.strategy == "":
		return ""
	case isString(s.strategy):
		return ", " + s.foreign()
	default:
		return ", strategy " + s.strategy
	}
}

// library names the library whose strings look like that of a key; "": not known.
func (s lockState) library() string {
	_, library, _ := strings.Cut(s.strategy, " ")
	return library
}

// foreign says what a string of another library is.
func (s lockState) foreign() string {
	if library := s.library(); library != "" {
		return "looks like " + library + ", or is no lock"
	}
	return "of another library, or no lock"
}

func fence(s lockState) string {
	if s.Fence == 0 {
		return ""
	}
	return fmt.Sprintf(", last fencing token %d", s.Fence)
}
