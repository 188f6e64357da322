package conformance

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
)

var update = flag.Bool("update", false, "write the list of cases in docs/reliability.md")

// docs/reliability.md lists all cases by contract.
func TestReliabilityCases(t *testing.T) {
	t.Parallel()
	const file, heading = "../docs/reliability.md", "\n## Cases by contract\n"
	doc, err := os.ReadFile(file)
	check.Must(t, err)
	text, _, ok := strings.Cut(string(doc), heading)
	if !ok {
		t.Fatalf("%s has no section %q", file, heading)
	}
	want := text + heading + listOfCases()
	switch {
	case want == string(doc):
	case *update:
		check.Must(t, os.WriteFile(file, []byte(want), 0o644))
	default:
		t.Errorf("%s does not list the cases as they are: go test ./conformance -run %s -update", file, t.Name())
	}
}

// listOfCases returns a section for each contract, with its cases in the order of the table.
func listOfCases() string {
	var b strings.Builder
	b.WriteString("\n`go test ./conformance -run TestReliabilityCases -update` writes this list.\n")
	for contract := range minimumHold + 1 {
		for i, c := range casesOf(contract) {
			if i == 0 {
				fmt.Fprintf(&b, "\n### Cases of %s\n\n", c.proves())
			}
			fmt.Fprintf(&b, "- %s\n", c.name)
		}
	}
	return b.String()
}

// casesOf returns the cases of a contract.
func casesOf(contract int) (list []testCase) {
	for _, c := range cases {
		if c.contract == contract {
			list = append(list, c)
		}
	}
	return list
}
