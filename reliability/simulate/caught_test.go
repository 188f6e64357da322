package simulate_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/reliability/simulate"
)

// A lock that is known to be wrong is found out, by a seed that a run of that seed alone finds again, with exit status 1.
func TestFlawsAreCaught(t *testing.T) {
	t.Parallel()
	if *stride > 0 {
		t.Skip("this is a process of a run")
	}
	for flaw := range flaws {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			seed := caught(t, flaw)
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0], "-schedules=1", fmt.Sprintf("-seed=%d", seed), "-repeat=3", "-flawed="+flaw, "-dir="+dir)
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("seed %d: exit status %d, %v", seed, code, err)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			closing := regexp.MustCompile(fmt.Sprintf(`^operations=[1-9]\d* faults=\d+ violations=[1-9]\d* seed=%d$`, seed))
			if !closing.MatchString(lines[len(lines)-1]) || !bytes.Contains(out, []byte(replay(seed))) {
				t.Errorf("seed %d again:\n%s", seed, out)
			}
			if flaw == "forever" {
				return // it is found at the servers, not in the history
			}
			for _, pattern := range []string{"*.json", "*.html"} {
				if found, _ := filepath.Glob(filepath.Join(dir, fmt.Sprint(seed), pattern)); len(found) == 0 {
					t.Errorf("seed %d: no %s was written:\n%s", seed, pattern, out)
				}
			}
		})
	}
}

// caught returns the first seed by which a flaw is found out.
func caught(t *testing.T, flaw string) uint64 {
	t.Helper()
	for seed := uint64(1); seed < 1000; seed++ {
		p := simulate.NewPlan(seed)
		if isSingle(p) && simulate.Run(t, p, flaws[flaw]).Violated() {
			return seed
		}
	}
	t.Fatalf("%s: not found", flaw)
	return 0
}

// isSingle tells whether the flawed locks, which are of one key at one server, can stand in.
func isSingle(p *simulate.Plan) bool { return p.Strategy == "single" && !p.Quorum }
