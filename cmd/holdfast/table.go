package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// lockRow is a lock in the output of ls and top: a line, or a row of the table.
type lockRow struct {
	name string
	lockState
	nodes      []string // of a quorum: those with a hold
	undecided  bool     // too few nodes of a quorum answered
	quorumText string   // such as "at 2 of 3 nodes"; "": not of a quorum
}

// text returns the lock in words.
func (l lockRow) text() string {
	switch {
	case l.quorumText == "":
		return describe(l.lockState)
	case l.undecided || !l.Held:
		return l.quorumText
	default:
		return describe(l.lockState) + ", " + l.quorumText
	}
}

// print prints the lock on a line.
func (l lockRow) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, l.json())
	}
	_, err := fmt.Fprintf(w, "%s  %s\n", printable(l.name), l.text())
	return printed(err)
}

func (l lockRow) json() lockJSON {
	j := newLockJSON(l.name, l.lockState)
	j.Nodes = l.nodes
	if l.undecided {
		j.Undecided, j.Waiters = true, -1
	}
	return j
}

// table returns the locks as an aligned table with a heading. Unknown cells are "-".
func table(locks []lockRow, now time.Time) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tMODE\tLEFT\tWAITING\tSINCE\tHOLDER") // a strings.Builder has no error
	for _, l := range locks {
		cells := []string{printable(l.name), l.mode(), l.left(), l.waitersText(), "-", l.text()}
		if l.Held && !l.undecided {
			cells[4], cells[5] = l.holder(now)
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush()
	return b.String()
}

func (l lockRow) mode() string {
	switch {
	case !l.Held || l.undecided:
		return "-"
	case l.Holds == 0:
		return "released"
	case l.Permits > 0:
		return fmt.Sprintf("%d of %d", l.Permits-l.Free, l.Permits)
	case l.Holds > 1:
		return fmt.Sprintf("%s x%d", l.Mode, l.Holds)
	default:
		return l.Mode.String()
	}
}

func (l lockRow) left() string {
	if l.Left <= 0 || l.undecided {
		return "-"
	}
	return l.Left.Round(100 * time.Millisecond).String()
}

func (l lockRow) waitersText() string {
	if l.Waiters < 0 || l.undecided {
		return "-"
	}
	return strconv.Itoa(l.Waiters)
}

// holder returns for how long the holder has had the lock, and who it is.
func (l lockRow) holder(now time.Time) (since, who string) {
	var parts []string
	if isString(l.strategy) {
		parts = append(parts, l.foreign())
	}
	if l.Owner != "" {
		parts = append(parts, "owner "+printable(l.Owner))
	}
	began, note := parseNote(l.Note)
	if since = "-"; !began.IsZero() {
		since = max(now.Sub(began), 0).Round(time.Second).String()
	}
	if note != "" {
		parts = append(parts, oneLine(note))
	}
	if l.quorumText != "" {
		parts = append(parts, l.quorumText)
	}
	return since, cmp.Or(strings.Join(parts, ", "), "-")
}

// oneLine returns s, quoted if a character of it cannot be shown on one line.
func oneLine(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(s)
	}
	return s
}

// noteForm is the form of the notes of newNote.
var noteForm = regexp.MustCompile(`^(.+ pid \d+) since (\S+)(: .*)$`)

// parseNote returns the time in a note of newNote, and the note without it. It returns another note as
// it is, with the zero time.
func parseNote(note string) (since time.Time, rest string) {
	m := noteForm.FindStringSubmatch(note)
	if m == nil {
		return time.Time{}, note
	}
	since, err := time.Parse(time.RFC3339, m[2])
	if err != nil {
		return time.Time{}, note
	}
	return since, m[1] + m[3]
}
