package conformance

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The table of docs/reliability.md names, for each contract, exactly the cases that there are.
func TestReliabilityTable(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted, named := regexp.MustCompile("`([^`]+)`"), map[string]int{}
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		contract, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if strings.TrimSpace(cells[1]) == "fencing tokens" {
			contract, err = fencing, nil
		}
		if err != nil {
			continue // not a row of that table
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[3], -1) {
			named[name[1]] = contract
		}
	}
	for _, c := range cases {
		contract, there := named[c.name]
		switch {
		case c.contract == 0: // of the driver's own contract, which package driver documents
		case !there:
			t.Errorf("contract %d: case %q is not named", c.contract, c.name)
		case contract != c.contract:
			t.Errorf("case %q stands at contract %d: want %d", c.name, contract, c.contract)
		}
		delete(named, c.name)
	}
	for name, contract := range named {
		t.Errorf("contract %d: there is no case %q", contract, name)
	}
}
