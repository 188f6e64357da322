package conformance

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// docs/reliability.md lists, under each contract, exactly the cases that prove it.
func TestReliabilityCases(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, lists, ok := strings.Cut(string(doc), "\n## Cases by contract\n")
	if !ok {
		t.Fatal("docs/reliability.md has no section on the cases")
	}
	contract, named := 0, map[string]int{}
	for line := range strings.Lines(lists) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "### Cases of "); ok {
			contract = contractOf(t, heading)
		} else if name, ok := strings.CutPrefix(line, "- "); ok {
			named[name] = contract
		}
	}
	for _, c := range cases {
		contract, there := named[c.name]
		switch {
		case !there:
			t.Errorf("contract %d: case %q is not listed", c.contract, c.name)
		case contract != c.contract:
			t.Errorf("case %q is listed under contract %d: want %d", c.name, contract, c.contract)
		}
		delete(named, c.name)
	}
	for name, contract := range named {
		t.Errorf("contract %d: there is no case %q", contract, name)
	}
}

// contractOf reads "contract 4", "fencing tokens" or "the minimum hold".
func contractOf(t *testing.T, heading string) int {
	t.Helper()
	switch heading {
	case "fencing tokens":
		return fencing
	case "the minimum hold":
		return minimumHold
	}
	contract, err := strconv.Atoi(strings.TrimPrefix(heading, "contract "))
	if err != nil {
		t.Fatalf("heading %q: %v", heading, err)
	}
	return contract
}
