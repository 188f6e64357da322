//go:build unix

package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/bench/peers/contender"
	"github.com/holdfast-go/holdfast/bench/peers/load"
	"github.com/holdfast-go/holdfast/bench/peers/work"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

// TestMain is the program of worker processes too: they run this binary again.
func TestMain(m *testing.M) {
	if os.Getenv(load.WorkerVariable) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// Each work runs and writes its reports, on real servers; unless effort.Full, the first one does.
func TestQuick(t *testing.T) {
	t.Parallel()
	for i, w := range work.All() {
		if w.Name == "kept" {
			continue
		}
		if i > 0 && !effort.Full() {
			break
		}
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			quick(t, w)
		})
	}
}

// A kept lock's share of the process's memory can be seen only while nothing else runs.
func TestQuickKept(t *testing.T) {
	effort.NeedFull(t)
	for _, w := range work.All() {
		if w.Name == "kept" {
			quick(t, w)
		}
	}
}

func quick(t *testing.T, w work.Work) {
	t.Helper()
	redistest.Need(t)
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	write(t, page, "before\n<!-- "+w.Name+" -->\n<!-- end -->\nafter\n")
	var out, progress bytes.Buffer
	args := []string{"-quick", "-only", w.Name, "-out", dir, "-page", page}
	if status := program(t.Context(), args, &out, &progress); status != statusDone {
		t.Fatalf("status %d\n%s", status, &progress)
	}
	checkCSV(t, filepath.Join(dir, w.Name+".csv"), w)
	for _, p := range w.Plots {
		checkPlot(t, filepath.Join(dir, p.File+".svg"), p.Title)
	}
	if !strings.Contains(out.String(), "## "+w.Title) || !strings.Contains(out.String(), "| holdfast/goredis |") {
		t.Errorf("stdout:\n%s", &out)
	}
	changed := read(t, page)
	if !strings.HasPrefix(changed, "before\n<!-- ") || !strings.HasSuffix(changed, "<!-- end -->\nafter\n") ||
		!strings.Contains(changed, "| holdfast/goredis |") {
		t.Errorf("the page:\n%s", changed)
	}
}

// checkCSV checks that the file has a line for each contender, with its metrics.
func checkCSV(t *testing.T, path string, w work.Work) {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(read(t, path))).ReadAll()
	if err != nil || len(lines) < 2 {
		t.Fatalf("%s: %d lines, %v", path, len(lines), err)
	}
	head := lines[0]
	for _, m := range w.Metrics {
		if !slices.Contains(head, m.Name) {
			t.Errorf("%s: no column %s in %v", path, m.Name, head)
		}
	}
	column := slices.Index(head, "violations")
	var seen []string
	for _, line := range lines[1:] {
		seen = append(seen, line[1])
		if column >= 0 && line[column] != "0" {
			t.Errorf("%s: %s has %s violations", path, line[1], line[column])
		}
	}
	for _, name := range []string{"holdfast/goredis", "holdfast/rueidis", "holdfast/redigo"} {
		if !slices.Contains(seen, name) {
			t.Errorf("%s: %s is not among %v", path, name, seen)
		}
	}
}

func checkPlot(t *testing.T, path, title string) {
	t.Helper()
	svg := read(t, path)
	for _, want := range []string{"<svg", title, "</svg>"} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s has no %s", path, want)
		}
	}
	if limit := 64 << 10; len(svg) > limit {
		t.Errorf("%s has %d bytes, more than %d", path, len(svg), limit)
	}
}

// A usage error is reported, and lists the possible values.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-only", "sleep"}, `no work is named "sleep"; the works are free,`},
		{[]string{"-only", "free,"}, `no work is named ""`},
		{[]string{"-fast"}, "flag provided but not defined: -fast"},
	} {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			t.Parallel()
			var progress bytes.Buffer
			if status := program(t.Context(), c.args, &bytes.Buffer{}, &progress); status != statusFailed || !strings.Contains(progress.String(), c.want) {
				t.Errorf("status %d, %s", status, &progress)
			}
		})
	}
}

func TestContenders(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range contender.All {
		if _, client, _ := strings.Cut(c.Name, "/"); client != c.Client {
			t.Errorf("%s is over %s", c.Name, c.Client)
		}
		if seen[c.Name] {
			t.Errorf("two contenders are named %s", c.Name)
		}
		seen[c.Name] = true
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text := locker.Must(os.ReadFile(path))
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	check.Must(t, os.WriteFile(path, []byte(text), 0o600))
}

// The page of the results has a place for each work, and shows its pictures.
func TestPage(t *testing.T) {
	t.Parallel()
	docs := filepath.Join("..", "..", "docs")
	page := read(t, filepath.Join(docs, "performance.md"))
	for _, w := range work.All() {
		if !strings.Contains(page, "<!-- "+w.Name+" -->\n") {
			t.Errorf("docs/performance.md has no place for %s", w.Name)
		}
		for _, p := range w.Plots {
			if path := "performance/" + p.File + ".svg"; !strings.Contains(page, "]("+path+")") {
				t.Errorf("docs/performance.md does not show %s", path)
			}
		}
	}
}
