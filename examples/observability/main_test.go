package main

import (
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/program"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

func TestMain(m *testing.M) { program.TestMain(m, main) }

// printed is a line of a tree: a span, or a link of the span above it.
type printed struct{ start, took, text, id, link string }

var treeLine = regexp.MustCompile(`^ *(\d+\.\d) +(\d+\.\d) {2}(.*?) +(-> )?([0-9a-f]{16})$`)

// spansOf reads the trees.
func spansOf(t *testing.T, out string) []printed {
	t.Helper()
	var all []printed
	_, trees, ok := strings.Cut(out, "span -> linked span\n")
	if !ok {
		t.Fatalf("no trees in:\n%s", out)
	}
	for line := range strings.Lines(trees) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if strings.HasPrefix(line, "working on") || strings.HasPrefix(line, "The metrics go") {
			break
		}
		m := treeLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("what line is %q?", line)
		}
		p := printed{start: m[1], took: m[2], text: m[3]}
		if m[4] == "" {
			p.id = m[5]
		} else {
			p.link = m[5]
		}
		all = append(all, p)
	}
	return all
}

// checkTrees checks that the trees show every event of three rounds.
func checkTrees(t *testing.T, out string) {
	t.Helper()
	spans := spansOf(t, out)
	acquisitions, service := map[string]string{}, "" // services by spans
	count := map[string]int{}
	worker := regexp.MustCompile(`^(worker-[a-z-]+): `)
	for _, s := range spans {
		if m := worker.FindStringSubmatch(s.text); m != nil {
			service = m[1]
		}
		for _, what := range []string{
			"acquire order:17: acquired", "hold order:17: released", "charge", "acquire report:daily: acquired at attempt 1",
			"acquire report:daily: held", "hold report:daily: lost after ",
		} {
			if s.link == "" && strings.Contains(s.text, what) {
				count[what]++
				count[what+" by "+service]++
			}
		}
		if strings.Contains(s.text, "acquire ") {
			acquisitions[s.id] = service
		}
	}
	for what, want := range map[string]int{
		"acquire order:17: acquired": 9, "hold order:17: released": 9, "charge": 9, "acquire order:17: acquired by worker-go-redis": 3,
		"acquire order:17: acquired by worker-rueidis": 3, "acquire order:17: acquired by worker-redigo": 3,
		"acquire report:daily: acquired at attempt 1 by worker-go-redis": 1, "hold report:daily: lost after ": 1,
		"acquire report:daily: held by worker-rueidis": 1, "acquire report:daily: held by worker-redigo": 1,
	} {
		if count[what] != want {
			t.Errorf("%q is printed %d times, want %d", what, count[what], want)
		}
	}

	attempts := regexp.MustCompile(`at attempt (\d+)`)
	contended, crossing := 0, 0
	for i, s := range spans {
		m := attempts.FindStringSubmatch(s.text)
		if len(m) == 0 || m[1] == "1" && !strings.Contains(s.text, ": held") {
			continue
		}
		contended++
		for _, l := range spans[i+1:] {
			if l.link == "" {
				break
			}
			holder, ok := acquisitions[l.link]
			if !ok {
				t.Errorf("%q links to a span that is not there", s.text)
			}
			if !strings.Contains(l.text, holder) {
				t.Errorf("%q says the wrong holder, want %s", l.text, holder)
			}
			if holder != acquisitions[s.id] {
				crossing++
			}
		}
	}
	if contended < 4 || crossing < 4 {
		t.Errorf("%d acquisitions were contended, %d links lead to another client", contended, crossing)
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	out := program.MustRun(t)
	if !regexp.MustCompile(`^server   127\.0\.0\.1:\d+ \(embedded\)\nmetrics  http://127\.0\.0\.1:\d+/metrics\n`).MatchString(out) {
		t.Errorf("the output begins with %.100q", out)
	}
	checkTrees(t, out)
}

func TestRealServer(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	redistest.Need(t)
	url := "redis://" + redistest.Start(t, redistest.Options{}).Addr()
	checkTrees(t, program.MustRun(t, "-redis", url))
	checkTrees(t, program.MustRun(t, "-redis", url)) // data of an earlier run does not matter
}

func TestWrongAddresses(t *testing.T) {
	t.Parallel()
	taken := locker.Must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { taken.Close() })
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"connection refused", []string{"-redis", "redis://127.0.0.1:1"}},
		{"is not of the form", []string{"-redis", "127.0.0.1:6379"}},
		{"address already in use", []string{"-metrics", taken.Addr().String()}},
		{"missing port", []string{"-metrics", "localhost"}},
		{"worker-go-redis cannot send to the collector at 127.0.0.1:1", []string{"-rounds", "1", "-otlp", "127.0.0.1:1"}},
		{"-otlp takes host:port", []string{"-otlp", "http://127.0.0.1:4318"}},
		{"-otlp takes host:port", []string{"-otlp", "127.0.0.1:4318/v1/traces"}},
		{"no such file or directory", []string{"-rounds", "1", "-svg", filepath.Join(t.TempDir(), "no", "folder.svg")}},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			program.Fails(t, "observability", tt.want, tt.args...)
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-rounds", "0"}, {"-rounds", "101"}, {"-serve", "-1s"}, {"stray"}} {
		program.Misused(t, args...)
	}
}
