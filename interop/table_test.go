package interop

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
)

var update = flag.Bool("update", false, "write the table of docs/migration.md, with HOLDFAST_TEST=full")

const (
	page         = "../docs/migration.md"
	tableBegins  = "<!-- the table of package interop begins -->\n"
	tableEnds    = "<!-- the table of package interop ends -->\n"
	tableHeading = "| Peer | Version | Key | `Prefix` | Excluded | How it waits | Renewed | Death | Late release | Violations | Cycles, ours : theirs | With `Keyspace`, and their `Signal` | With pauses of ours | Longest waits |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
)

// row is a line of the table: a kind whose tests have passed.
type row struct {
	kind
	tally
	heard  tally // with Keyspace, and their signal
	paused tally // and with pauses of ours, if they can be woken
}

// cells are those that do not change from run to run. They are true if the tests have passed.
func (k kind) cells() []string {
	prefix, death, late := "none", "at the lease's end, both ways", "untouched, both ways"
	if k.prefix != "" {
		prefix = "`" + k.prefix + "`"
	}
	if k.wakes == sleeps {
		death = "we at the lease's end, they at their timeout"
	}
	if k.steals {
		late = "**theirs changes our lock**"
	}
	return []string{
		k.library, k.version, k.key, prefix, "both ways", string(k.wakes), "both ways", death, late, "0",
	}
}

func (k kind) line() string { return "| " + strings.Join(k.cells(), " | ") + " | " }

// rows are the lines of a run.
type rows struct {
	mu  sync.Mutex
	all map[string]row
}

func newRows() *rows { return &rows{all: map[string]row{}} }

func (r *rows) add(one row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[one.name] = one
}

// compare writes the table if every kind has passed and -update asks for it.
func (r *rows) compare(t *testing.T) {
	t.Helper()
	if !*update || t.Failed() {
		return
	}
	var b strings.Builder
	b.WriteString(tableBegins + tableHeading)
	for _, k := range kinds {
		one, ok := r.all[k.name]
		if !ok {
			t.Fatalf("%s did not run: the table is not written", k.name)
		}
		heard, paused, waits := "-", "-", "-"
		if k.strategy == "" {
			heard = one.heard.String()
		}
		if k.isWoken() {
			paused, waits = one.paused.String(), one.paused.waits()
		}
		fmt.Fprintf(&b, "%s%v | %s | %s | %s |\n", k.line(), one.tally, heard, paused, waits)
	}
	before, _, after := cutTable(t)
	check.Must(t, os.WriteFile(page, []byte(before+b.String()+tableEnds+after), 0o644))
}

// cutTable cuts the page around the table.
func cutTable(t *testing.T) (before, table, after string) {
	t.Helper()
	b, err := os.ReadFile(page)
	check.Must(t, err)
	before, rest, begins := strings.Cut(string(b), tableBegins)
	table, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no table", page)
	}
	return before, table, after
}

// The page has the kinds that are tested, as they are.
func TestTable(t *testing.T) {
	t.Parallel()
	if *update {
		t.Skip("TestPeers writes it")
	}
	_, table, _ := cutTable(t)
	lines := strings.SplitAfter(strings.TrimPrefix(table, tableHeading), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" })
	check.Equal(t, "lines of the table", len(lines), len(kinds))
	for i, k := range kinds[:min(len(kinds), len(lines))] {
		if !strings.HasPrefix(lines[i], k.line()) {
			t.Errorf("the line of %s is\n%s\nwant\n%s...\nHOLDFAST_TEST=full go test -run TestPeers -update writes it", k.name, lines[i], k.line())
		}
	}
}

// The versions of the table are those that are installed.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		b, err := os.ReadFile(k.pinned)
		check.Must(t, err)
		check.Contains(t, k.pinned+" for "+k.name, string(b), k.version)
	}
}
