package conformance

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Run runs every case that h must pass, each as the subtest kind/name of t. Servers are started
// once per kind, or for a single case where it disturbs them. At the end it fails t if a case that
// should have run did not.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if err := h.check(); err != nil {
		t.Fatal(err)
	}
	h.short, h.client = testing.Short(), new(atomic.Value)
	var m matrix
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) { runKind(t, &h, kind, &m) })
	}
	if chosen() {
		return
	}
	for _, missing := range m.missing(&h) {
		t.Errorf("conformance: case did not run: %s", missing)
	}
	t.Logf("conformance: %s", m.summary(&h))
}

func (h *Harness) check() error {
	if h.Dial == nil {
		return errors.New("conformance: Harness.Dial is nil")
	}
	for _, k := range h.On {
		if !slices.Contains(kinds, k) {
			return fmt.Errorf("conformance: Harness.On names %q; known are %q", k, kinds)
		}
	}
	for _, f := range h.Lacks {
		if !slices.Contains(features, f) {
			return fmt.Errorf("conformance: Harness.Lacks names %q; known are %q", f, features)
		}
	}
	return nil
}

func runKind(t *testing.T, h *Harness, kind Kind, m *matrix) {
	var todo []*testCase
	for i := range cases {
		if cases[i].applies(h, kind) {
			todo = append(todo, &cases[i])
		}
	}
	if len(todo) == 0 {
		return
	}
	if kind != Miniredis && !redistest.Available() && os.Getenv("CI") != "true" {
		m.skip(kind)
	}
	shared := startShared(t, kind, todo) // skips or fails t where there is no server
	t.Cleanup(func() {
		leavesNoConnection(t, shared.one)
		leavesNoConnection(t, shared.quorum)
	})
	for _, c := range todo {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if !t.Skipped() { // as by a Dial that gives up
					m.ran(cell{c.name, kind})
				}
			})
			runCase(t, h, c, kind, shared)
		})
	}
}

// runCase runs one case on tb. shared has the servers for cases that need none of their own.
func runCase(tb TB, h *Harness, c *testCase, kind Kind, shared pool) {
	tb.Helper()
	srv := shared.one
	if c.quorum {
		srv = shared.quorum
	}
	if srv == nil || c.own {
		srv = c.start(tb, kind)
		tb.Cleanup(func() { leavesNoConnection(tb, srv) })
	}
	t := newCaseT(tb, h, srv)
	t.leaves = c.leavesKeys()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("why this case: %s (contract %d)", c.why, c.contract)
		}
	})
	c.run(t)
}

// chosen reports whether the command line picks among subtests.
func chosen() bool {
	for _, name := range [...]string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && strings.Contains(f.Value.String(), "/") {
			return true
		}
	}
	f := flag.Lookup("test.failfast")
	return f != nil && f.Value.String() == "true"
}

// cell is one case on one kind of server.
type cell struct {
	name string
	kind Kind
}

func (c cell) String() string { return string(c.kind) + "/" + c.name }

// matrix notes which cells ran. The zero matrix is empty.
type matrix struct {
	mu       sync.Mutex
	executed map[cell]int
	skipped  []Kind // kinds without a server program to run
}

func (m *matrix) ran(c cell) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.executed == nil {
		m.executed = map[cell]int{}
	}
	m.executed[c]++
}

func (m *matrix) skip(k Kind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.skipped = append(m.skipped, k)
}

// missing returns the cells that h must pass and that did not run.
func (m *matrix) missing(h *Harness) []cell {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []cell
	for _, kind := range kinds {
		if slices.Contains(m.skipped, kind) {
			continue
		}
		for i := range cases {
			c := cell{cases[i].name, kind}
			if cases[i].applies(h, kind) && m.executed[c] == 0 {
				list = append(list, c)
			}
		}
	}
	return list
}

// summary counts the cells by kind.
func (m *matrix) summary(h *Harness) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: of %d cases ran", h.name(), len(cases))
	for _, kind := range kinds {
		n := 0
		for c := range m.executed {
			if c.kind == kind {
				n++
			}
		}
		fmt.Fprintf(&b, " %d on %s", n, kind)
		if slices.Contains(m.skipped, kind) {
			b.WriteString(" (no server program)")
		}
		if kind != kinds[len(kinds)-1] {
			b.WriteByte(',')
		}
	}
	if len(h.Lacks) > 0 {
		fmt.Fprintf(&b, "; lacks %v", h.Lacks)
	}
	return b.String()
}
