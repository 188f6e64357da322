package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

func TestTable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 2, 0, 42, 0, time.UTC)
	held := func(s locker.State, strategy string) lockState {
		s.Held, s.Holds = true, max(s.Holds, 1)
		return lockState{s, strategy}
	}
	got := table([]lockRow{
		{name: "nightly", lockState: held(locker.State{Left: 29500 * time.Millisecond, Waiters: 2,
			Note: "ops@db1 pid 4711 since 2026-03-01T02:00:00Z: report --full"}, "single")},
		{name: "a b", lockState: held(locker.State{Mode: locker.Shared, Holds: 3, Waiters: -1, Owner: "o", Note: "two\nlines"}, "rwhash")},
		{name: "pool", lockState: held(locker.State{Permits: 5, Free: 3, Left: time.Minute}, "semaphore")},
		{name: "old", lockState: held(locker.State{Left: time.Hour}, anyString)},
		{name: "theirs", lockState: held(locker.State{Left: time.Hour}, "string redsync")},
		{name: "kept", lockState: lockState{locker.State{Held: true, Left: time.Second}, "single"}},
		{name: "all", lockState: held(locker.State{Left: time.Second}, ""), quorumText: "at 3 of 3 nodes"},
		{name: "minor", quorumText: "held at 1 of 3 nodes, which is no quorum"},
		{name: "torn", lockState: held(locker.State{}, ""), undecided: true, quorumText: "held at 1 of 3 nodes, and 2 did not answer"},
	}, now)
	const want = `
NAME     MODE       LEFT    WAITING  SINCE  HOLDER
nightly  exclusive  29.5s   2        42s    ops@db1 pid 4711: report --full
"a b"    shared x3  -       -        -      owner o, "two\nlines"
pool     2 of 5     1m0s    0        -      -
old      exclusive  1h0m0s  0        -      of another library, or no lock
theirs   exclusive  1h0m0s  0        -      looks like redsync, or is no lock
kept     released   1s      0        -      -
all      exclusive  1s      0        -      at 3 of 3 nodes
minor    -          -       0        -      held at 1 of 3 nodes, which is no quorum
torn     -          -       -        -      held at 1 of 3 nodes, and 2 did not answer
`
	if got != want[1:] {
		t.Errorf("the table is\n%s", got)
	}
}

// docs/cli.md shows a table as ls prints it.
func TestTableOfTheDocs(t *testing.T) {
	t.Parallel()
	page := string(locker.Must(os.ReadFile("../../docs/cli.md")))
	_, block, _ := strings.Cut(page, "$ holdfast ls --foreign\n")
	block, _, _ = strings.Cut(block, "\n\n")
	hold := func(left time.Duration, waiters int, note string) lockState {
		return lockState{locker.State{Held: true, Holds: 1, Left: left, Waiters: waiters, Note: note}, "single"}
	}
	readers := hold(58300*time.Millisecond, 4, "")
	readers.Mode, readers.Holds, readers.Owner = locker.Shared, 3, "cache"
	want := table([]lockRow{
		{name: "invoice:4711", lockState: readers},
		{name: "nightly", lockState: hold(29500*time.Millisecond, 1, "ops@db1 pid 4711 since 2026-03-01T02:00:00Z: report --full")},
		{name: "old-worker", lockState: lockState{hold(time.Minute, 0, "").State, "string redis-py or redlock"}},
	}, time.Date(2026, 3, 1, 2, 12, 42, 0, time.UTC))
	if got := strings.ReplaceAll("\n"+block+"\n", "\n    ", "\n")[1:]; got != want {
		t.Errorf("docs/cli.md shows\n%s\nand ls prints\n%s", got, want)
	}
}

// The note of run tells since when; another note is shown as it is.
func TestParseNote(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	note := newNote([]string{"report", "since", "noon: all"})(began)
	since, rest := parseNote(note)
	if !since.Equal(began) || !strings.HasSuffix(rest, ": report since noon: all") || strings.Contains(rest, "2026") {
		t.Errorf("%q is parsed as %v, %q", note, since, rest)
	}
	for _, other := range []string{"", "report", "a pid 1 since yesterday: x", "pid 1 since 2026-03-01T02:00:00Z: x"} {
		if since, rest := parseNote(other); !since.IsZero() || rest != other {
			t.Errorf("%q is parsed as %v, %q", other, since, rest)
		}
	}
}

// The content of top fits on the screen.
func TestScreen(t *testing.T) {
	t.Parallel()
	locks := make([]lockRow, 5)
	for i := range locks {
		locks[i] = lockRow{name: string(rune('a' + i)), lockState: lockState{locker.State{Held: true, Holds: 1, Waiters: i - 1}, ""}}
	}
	at := time.Date(2026, 3, 1, 2, 0, 42, 0, time.UTC)
	for _, tt := range []struct {
		name       string
		screen     screen
		most, want int
		first, end string
	}{
		{"all", screen{locks, at, ""}, 10, 7, "02:00:42  5 locks, 6 waiting", "e"},
		{"too many", screen{locks, at, ""}, 5, 5, "02:00:42  5 locks, 6 waiting", "... and 3 more"},
		{"trouble", screen{locks[:1], at, "no answer"}, 10, 4, "02:00:42  1 lock, 0 waiting", "a"},
		{"trouble of two lines", screen{locks[:1], at, "no master\nno answer"}, 10, 4, "02:00:42  1 lock, 0 waiting", "a"},
		{"nothing", screen{nil, at, ""}, 10, 1, "02:00:42  0 locks, 0 waiting", "02:00:42"},
		{"no answer", screen{trouble: "no answer"}, 10, 2, "no answer yet", "no answer"},
		{"one line", screen{locks, at, ""}, 0, 1, "02:00:42  5 locks, 6 waiting", "02:00:42"},
	} {
		lines := tt.screen.lines(tt.most)
		if len(lines) != tt.want || lines[0] != tt.first || !strings.HasPrefix(lines[len(lines)-1], tt.end) {
			t.Errorf("%s: %q", tt.name, lines)
		}
		if strings.Contains(strings.Join(lines, ""), "\n") {
			t.Errorf("%s: %q has more lines than it says", tt.name, lines)
		}
	}
}

// top needs a terminal: elsewhere ls and watch are of use.
func TestTopNeedsATerminal(t *testing.T) {
	t.Parallel()
	out, _ := says(t, statusUsage, "no terminal: use ls", here(t), "top")
	check.Equal(t, "output", out, "")
}
