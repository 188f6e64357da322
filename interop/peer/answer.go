package peer

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Outcome is the result of a command.
type Outcome string

// The outcomes.
const (
	OK    Outcome = "ok"
	No    Outcome = "no" // refused, or not held any more
	Error Outcome = "error"
)

// Answer is the answer to a command.
type Answer struct {
	Begin, End time.Time
	Outcome    Outcome
	Text       string
}

// parse parses a line of a peer.
func parse(line string) (Answer, error) {
	words := strings.SplitN(line, " ", 4)
	if len(words) < 3 {
		return Answer{}, fmt.Errorf("a peer answered %q", line)
	}
	begin, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return Answer{}, fmt.Errorf("a peer answered %q: %w", line, err)
	}
	end, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return Answer{}, fmt.Errorf("a peer answered %q: %w", line, err)
	}
	a := Answer{Begin: time.UnixMicro(begin), End: time.UnixMicro(end), Outcome: Outcome(words[2])}
	if len(words) == 4 {
		a.Text = words[3]
	}
	switch a.Outcome {
	case OK, No, Error:
		return a, nil
	default:
		return Answer{}, fmt.Errorf("a peer answered %q", line)
	}
}

// Hammered is what a hammer did.
type Hammered struct {
	Cycles, Violations int
	Longest            time.Duration // wait
}

// Hammered returns what a hammer did.
func (a Answer) Hammered() (h Hammered, err error) {
	var longest int64
	if _, err := fmt.Sscan(a.Text, &h.Cycles, &h.Violations, &longest); err != nil {
		return Hammered{}, fmt.Errorf("a hammer answered %s %q: %w", a.Outcome, a.Text, err)
	}
	h.Longest = time.Duration(longest) * time.Millisecond
	return h, nil
}
