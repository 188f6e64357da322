package realtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every test of this repository in real time is independent of the speed of the machine.
func TestRepository(t *testing.T) {
	t.Parallel()
	findings, err := Check(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
	if t.Failed() {
		t.Logf("use testing/synctest, or wait for an event; an exception is a comment %q with a reason", allowed)
	}
}

// Each rule finds its own cases, and nothing else.
func TestRules(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"_ = Request{TTL: 29 * time.Second}":                           "a TTL below 30s",
		"_ = Request{TTL: brief}":                                      "a TTL below 30s",
		"_ = Request{TTL: 30 * time.Second}":                           "",
		"_ = Request{TTL: time.Minute / 3}":                            "a TTL below 30s",
		"bounded.New(ctx, time.Second)":                                "a deadline below 10s",
		"_ = Request{TTL: 0}":                                          "",
		"_ = Request{TTL: ttl}":                                        "",
		"context.WithTimeout(ctx, brief/2)":                            "a deadline below 10s",
		"context.WithTimeout(ctx, time.Minute)":                        "",
		"time.AfterFunc(time.Hour, p.Freeze)":                          "what is aimed by a clock",
		"_ = time.Since(began) > limit":                                "no bound on how long",
		"_ = time.Since(began) < limit":                                "",
		"_ = Request{TTL: time.Second} //realtime:ok it is refused":    "",
		"//realtime:ok it is refused\n\t_ = Request{TTL: time.Second}": "",
		"//realtime:ok \n\t_ = Request{TTL: time.Second}":              "a TTL below 30s",
		"const brief = 1 * time.Hour\n\t_ = Request{TTL: brief}":       "",
		"func(brief time.Duration) { _ = Request{TTL: brief} }(0)":     "",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			source := fmt.Sprintf("package x\n\nconst brief = 2 * time.Second\n\nfunc f() {\n\t%s\n}\n", line)
			got := check(t, source)
			if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0].Rule, want)) {
				t.Errorf("found %v, want %q", got, want)
			}
		})
	}
}

// A file in bubbles, or with a reason for an exception, is left out.
func TestFilesThatAreLeftOut(t *testing.T) {
	t.Parallel()
	const body = "\n\nfunc f() { time.AfterFunc(1, g) }\n"
	for head, want := range map[string]int{
		"package x": 1,
		"package x\n\nimport \"testing/synctest\"":       0,
		"package x\n\nvar _ = check.InFakeTime":          0,
		"package x\n\nvar _ = check.EachInFakeTime[int]": 0,
		"//realtime:ok in the bubbles of y\npackage x":   0,
	} {
		if got := check(t, head+body); len(got) != want {
			t.Errorf("%q: found %v, want %d", head, got, want)
		}
	}
}

func check(t *testing.T, source string) []Finding {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	findings, err := Check(dir)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}
