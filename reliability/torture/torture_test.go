package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

// lastLine matches the last line of a run.
var lastLine = regexp.MustCompile(`(?m)^operations=(\d+) faults=(\d+) violations=(\d+) seed=(\d+)\n\z`)

func number(text string) int { return locker.Must(strconv.Atoi(text)) }

// needTime skips a test with a run of the program if tests are to be short.
func needTime(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out what tortures servers for half a minute")
	}
	redistest.Need(t)
}

// The whole program, for a while: no promise is broken.
func TestTorture(t *testing.T) {
	needTime(t)
	var out bytes.Buffer
	code := program(t.Context(), []string{"-seconds", effort.Of("12", "12", "60"), "-out", kept(t)}, io.MultiWriter(&out, testWriter{t}))
	last := lastLine.FindStringSubmatch(out.String())
	if code != statusKept || last == nil {
		t.Fatalf("exit status %d", code)
	}
	if number(last[1]) < 100 || number(last[2]) < 3 || number(last[3]) != 0 {
		t.Errorf("that is no torture: %s", last[0])
	}
}

// kept returns a folder for histories. It stays if the test fails.
func kept(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "torture-") //nolint:usetesting // it stays after a failure
	check.Must(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	return dir
}

// testWriter writes to a test's log.
type testWriter struct{ t *testing.T }

// Write implements io.Writer.
func (w testWriter) Write(text []byte) (int, error) {
	w.t.Log(strings.TrimSuffix(string(text), "\n"))
	return len(text), nil
}

// Flawed locks are found, by default one: the violation is written with its picture, and is found again when the
// history is checked again.
func TestViolation(t *testing.T) {
	t.Parallel()
	needTime(t)
	for i, kind := range []string{"flawed: deletes without comparing", "flawed: ignores that leases end"} {
		if i > 0 && !effort.Full() {
			break
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			dir := t.TempDir()
			// About one round in two shows the flaw.
			code := program(t.Context(), []string{"-seconds", "150", "-first", "-seed", "7", "-on", "one server", "-strategies", kind, "-out", dir}, &out)
			t.Log(out.String())
			last := lastLine.FindStringSubmatch(out.String())
			if code != statusBroken || last == nil || number(last[3]) == 0 || last[4] != "7" {
				t.Fatalf("exit status %d", code)
			}
			histories, err := filepath.Glob(filepath.Join(dir, "flawed*.json"))
			if err != nil || len(histories) == 0 {
				t.Fatalf("no history in %s: %v", dir, err)
			}
			check.Contains(t, "output", out.String(), histories[0])
			picture, err := os.ReadFile(strings.TrimSuffix(histories[0], ".json") + ".html")
			if err != nil || !bytes.Contains(picture, []byte("acquire #")) {
				t.Errorf("no picture: %v", err)
			}
			check.Equal(t, "status of the check", program(t.Context(), []string{"-check", histories[0]}, &out), statusBroken)
		})
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-on", "the moon"}, {"-strategies", "hope"}, {"-beside", "boredom"}, {"-check", "/does/not/exist"}, {"-seconds", "x"},
		{"-seconds", "1", "-on", "one server"}, // too short for a round
	} {
		var out bytes.Buffer
		if code := program(t.Context(), args, &out); code != statusFailed || out.Len() == 0 {
			t.Errorf("%q: exit status %d: %s", args, code, out.String())
		}
	}
}

// The rounds of a seed and their faults are the same in each run.
func TestSeed(t *testing.T) {
	t.Parallel()
	plan := func(seed uint64) []string {
		var names []string
		r := &run{seed: seed, troubles: troubles}
		random := r.random(0)
		for n := range 20 {
			round := r.round(0, n, 2, &deployment{topology: "one server"}, random)
			round.plan(time.Hour)
			names = append(names, round.name, strconv.FormatBool(round.lossy))
		}
		return names
	}
	if a, b := plan(1), plan(1); !slices.Equal(a, b) {
		t.Errorf("%q and %q", a, b)
	}
	if a, b := plan(1), plan(2); slices.Equal(a, b) {
		t.Error("the seed does not matter")
	}
}
