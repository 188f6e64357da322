package isolation

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

var update = flag.Bool("update", false, "write the table of limits in docs/reliability.md")

// docs/reliability.md has the rows with bounds that users should know.
func TestReliabilityTable(t *testing.T) {
	t.Parallel()
	const file = "../../docs/reliability.md"
	const begin, end = "| Fault of one process |", "\n\nThe added wait "
	doc, err := os.ReadFile(file)
	check.Must(t, err)
	before, rest, ok := strings.Cut(string(doc), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no table between %q and %q", file, begin, end)
	}
	want := before + begin + " Added wait | Rate kept | Because |\n|---|---|---|---|" + limits() + end + after
	switch {
	case want == string(doc):
	case *update:
		check.Must(t, os.WriteFile(file, []byte(want), 0o644))
	default:
		t.Errorf("%s does not have the limits as they are: go test ./isolation -run %s -update", file, t.Name())
	}
}

// limits returns a line for each row with a reason.
func limits() string {
	var b strings.Builder
	for _, r := range rows {
		if r.why != "" {
			keeps := cmp.Or(r.bound.keeps, strategies[0].keeps)
			fmt.Fprintf(&b, "\n| %s | %v | %.0f %% | %s |", r.fault, r.bound.delay.Round(time.Millisecond), 100*keeps, r.why)
		}
	}
	return b.String()
}
