package simulate_test

import (
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
			dir := t.TempDir()
			out := violates(t, 1, "-schedules=120", "-flawed="+flaw, "-dir="+dir)
			found := regexp.MustCompile(`make simulate SEED=(\d+) SCHEDULES=1`).FindStringSubmatch(out)
			if found == nil {
				t.Fatalf("no seed is named:\n%s", out)
			}
			if flaw != "forever" { // that is found at the servers, not in the history
				for _, pattern := range []string{"*.json", "*.html"} {
					if files, _ := filepath.Glob(filepath.Join(dir, found[1], pattern)); len(files) == 0 {
						t.Errorf("no %s was written:\n%s", pattern, out)
					}
				}
			}
			var seed uint64
			if _, err := fmt.Sscan(found[1], &seed); err != nil {
				t.Fatal(err)
			}
			violates(t, seed, "-schedules=1", "-repeat=20", "-flawed="+flaw, "-dir="+dir)
		})
	}
}

// violates runs what `make simulate` runs, demands that it finds a violation, and returns what it prints.
func violates(t *testing.T, seed uint64, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append(args, fmt.Sprintf("-seed=%d", seed))...)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("%q: exit status %d, %v", args, code, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	closing := regexp.MustCompile(fmt.Sprintf(`^operations=[1-9]\d* faults=\d+ violations=[1-9]\d* seed=%d$`, seed))
	if !closing.MatchString(lines[len(lines)-1]) {
		t.Errorf("%q from seed %d:\n%s", args, seed, out)
	}
	return string(out)
}

// isSingle tells whether the flawed locks, which are of one key at one server, can stand in.
func isSingle(p *simulate.Plan) bool { return p.Strategy == "single" && !p.Quorum }
