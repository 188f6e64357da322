package simulate_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/reliability/simulate"
)

// A lock that is known to be wrong is found out, by seeds of which a run of that seed alone finds
// it again, with exit status 1: not each time, since who comes first of those that are ready at the
// same instant is not the seed's.
func TestFlawsAreCaught(t *testing.T) {
	t.Parallel()
	if *stride > 0 {
		t.Skip("this is a process of a run")
	}
	for flaw := range flaws {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out, err := violates("1", "-schedules=120", "-flawed="+flaw, "-dir="+dir)
			if err != nil {
				t.Fatal(err)
			}
			found := regexp.MustCompile(`make simulate SEED=(\d+) SCHEDULES=1`).FindAllStringSubmatch(out, 3)
			if found == nil {
				t.Fatalf("no seed is named:\n%s", out)
			}
			if flaw != "forever" { // that is found at the servers, not in the history
				for _, pattern := range []string{"*.json", "*.html"} {
					if files, _ := filepath.Glob(filepath.Join(dir, found[0][1], pattern)); len(files) == 0 {
						t.Errorf("no %s was written:\n%s", pattern, out)
					}
				}
			}
			var errs []error
			for _, seed := range found {
				_, err := violates(seed[1], "-schedules=1", "-repeat=20", "-flawed="+flaw, "-dir="+dir)
				if err == nil {
					return
				}
				errs = append(errs, err)
			}
			t.Error(errors.Join(errs...))
		})
	}
}

// violates runs what `make simulate` runs, and returns what it prints; an error unless it finds a
// violation.
func violates(seed string, args ...string) (string, error) {
	cmd := exec.Command(os.Args[0], append(args, "-seed="+seed)...)
	out, err := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	closing := regexp.MustCompile(`^operations=[1-9]\d* faults=\d+ violations=[1-9]\d* seed=` + seed + "$")
	if code := cmd.ProcessState.ExitCode(); code != 1 || !closing.MatchString(lines[len(lines)-1]) {
		return "", errors.Join(fmt.Errorf("%q from seed %s: exit status %d:\n%s", args, seed, code, out), err)
	}
	return string(out), nil
}

// isSingle reports whether the flawed locks, which are of one key at one server, can stand in.
func isSingle(p *simulate.Plan) bool { return p.Strategy == "single" && !p.Quorum }
