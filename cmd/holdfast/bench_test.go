//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// bench measures over each client, in a bounded time, and leaves no key.
func TestBench(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	s.MustCommand(t, "SET", "mine", "1")
	for _, args := range [][]string{
		{"--client", "goredis"}, {"--client", "rueidis", "--prefix", "p:"}, {"--client", "redigo", "--strategy", "semaphore:3"},
		{"--client", "valkey", "--strategy", "rwhash"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			out, _ := says(t, 0, "", at(s.Addr()), append([]string{"bench", "--json", "--seconds", "1"}, args...)...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if len(lines) != 3 {
				t.Fatalf("it prints %s", out)
			}
			for i, want := range []string{"1 goroutine", "16 goroutines", "hand-over"} {
				var m measurement
				check.Must(t, json.Unmarshal([]byte(lines[i]), &m))
				n := 0
				for _, b := range m.Histogram {
					n += b.Count
				}
				if m.Phase != want || m.Count == 0 || n != m.Count || m.P50 > m.P90 || m.P90 > m.P99 || m.P99 > m.Max || m.Polled > m.Count {
					t.Errorf("%s", lines[i])
				}
			}
		})
	}
	t.Cleanup(func() {
		check.Equal(t, "keys that are left", fmt.Sprint(s.MustCommand(t, "KEYS", "*")), "[mine]")
	})
}

// bench describes its measurement and its servers.
func TestBenchDescribes(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	out, errs, status := run(t, at(s.Addr()), "bench", "--seconds", "1", "--client", "redigo", "--strategy", "semaphore:2")
	if status != 0 || !strings.HasPrefix(out, "semaphore over redigo at "+s.Addr()+", for 1 s:\n") {
		t.Errorf("status %d, %q: %s", status, out, errs)
	}
}

// A signal ends a long run, and no key is left.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		p := begin(t, at(s.Addr()), "bench", "--seconds", "3000")
		check.Eventually(t, "it takes locks", func() bool { return s.MustCommand(t, "DBSIZE") != int64(0) })
		_ = p.cmd.Process.Signal(sig)
		if rest, status := p.end(t); status != 128+int(sig) || strings.Contains(rest, "per second") || p.stderr.String() != "" {
			t.Errorf("%v: status %d, output %q, standard error %q", sig, status, rest, p.stderr)
		}
		empty(t, s)
	}
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	us := time.Microsecond
	for _, test := range []struct {
		took []time.Duration
		want []bucket
	}{
		{nil, nil},
		{[]time.Duration{0}, []bucket{{1e-6, 1}}},
		{[]time.Duration{7 * us, 30 * us, 49 * us, 50 * us}, []bucket{{1e-5, 1}, {2e-5, 0}, {5e-5, 2}, {1e-4, 1}}},
		{[]time.Duration{1500 * us}, []bucket{{2e-3, 1}}},
	} {
		if got := histogram(test.took); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%v: %v, want %v", test.took, got, test.want)
		}
	}
	took := []time.Duration{1 * us, 2 * us, 3 * us, 4 * us}
	for p, want := range map[float64]float64{0: 1e-6, 25: 1e-6, 50: 2e-6, 51: 3e-6, 100: 4e-6} {
		check.Equal(t, fmt.Sprint("percentile ", p), percentile(took, p), want)
	}
}
