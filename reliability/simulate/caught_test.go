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

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/reliability/simulate"
)

// A flawed lock is found by seeds. Each finds it again when it is run alone, with exit status 1,
// but perhaps not in the first run: the order of goroutines ready at the same instant is not part
// of the seed. By default one flaw is tried; package history tests its rules.
func TestFlawsAreCaught(t *testing.T) {
	t.Parallel()
	for flaw := range flaws {
		if flaw != "delete" && !effort.Full() {
			continue
		}
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out := locker.Must(violates("1", "-schedules=120", "-enough=2", "-flawed="+flaw, "-dir="+dir))
			found := regexp.MustCompile(`make simulate SEED=(\d+) SCHEDULES=1`).FindAllStringSubmatch(out, 3)
			if found == nil {
				t.Fatalf("no seed is named:\n%s", out)
			}
			if flaw != "forever" { // it is found at the servers, not in the history
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

// violates does a run of `make simulate`, and returns its output. No violation is an error.
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

// suits reports whether a plan is for a flawed lock: of one key at one server, or a semaphore.
func suits(p *simulate.Plan, flaw string) bool {
	if flaw == tooMany {
		return p.Strategy == "semaphore"
	}
	return p.Strategy == "single" && !p.Quorum
}
