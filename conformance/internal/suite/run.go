package suite

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Run runs every case that applies, each as the subtest kind/name of t. Servers are started once
// per kind, or for a single case if it disturbs them. At the end it fails t if one of these cases
// did not run.
func (s *Suite) Run(t *testing.T) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	s.Short, s.Full = testing.Short(), effort.Full()
	for _, kind := range Kinds {
		t.Run(string(kind), func(t *testing.T) { s.runKind(t, kind) })
	}
	if chosen() {
		return
	}
	for _, missing := range s.matrix.missing(s.Demanded()) {
		t.Errorf("conformance: case did not run: %s", missing)
	}
	t.Logf("conformance: %s", s.summary())
}

// Check returns an error if s cannot be run.
func (s *Suite) Check() error {
	if s.Dial == nil {
		return errors.New("conformance: Harness.Dial is nil")
	}
	for _, k := range s.On {
		if !slices.Contains(Kinds, k) {
			return fmt.Errorf("conformance: Harness.On names %q; known are %q", k, Kinds)
		}
	}
	for _, f := range s.Lacks {
		if !slices.Contains(Features, f) {
			return fmt.Errorf("conformance: Harness.Lacks names %q; known are %q", f, Features)
		}
	}
	return nil
}

// on returns the cases for servers of kind k.
func (s *Suite) on(k Kind) (list []*Case) {
	for i := range s.Cases {
		if c := &s.Cases[i]; s.applies(c, k) {
			list = append(list, c)
		}
	}
	return list
}

// Find returns the case with this name if it applies on servers of kind k, else nil.
func (s *Suite) Find(name string, k Kind) *Case {
	for _, c := range s.on(k) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (s *Suite) runKind(t *testing.T, kind Kind) {
	todo := s.on(kind)
	if len(todo) == 0 {
		t.Skip(s.whyNone(kind))
	}
	if !kind.simulated() && !redistest.Available() && os.Getenv("CI") != "true" {
		s.matrix.skip(kind)
	}
	shared := startShared(t, kind, todo) // skips or fails t if there is no server
	t.Cleanup(func() {
		for _, srv := range shared {
			leavesNoConnection(t, srv)
		}
	})
	for _, c := range todo {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if kind == Memory {
				Bubble(t, t.Name(), func(t *testing.T) { s.runCase(t, c, kind, nil) })
				return
			}
			s.runCase(t, c, kind, shared[c.Nodes])
		})
	}
}

// whyNone says why no case runs on servers of kind k.
func (s *Suite) whyNone(k Kind) string {
	long := Suite{Lacks: s.Lacks, On: s.On, Cases: s.Cases}
	switch {
	case len(long.on(k)) > 0:
		return fmt.Sprintf("-short leaves out the cases on %s", k)
	case k == Memory && s.Lacking(FeatureDial), k == Miniredis && s.On == nil:
		return fmt.Sprintf("%s is for harnesses that lack %s, %s for the others", Miniredis, FeatureDial, Memory)
	case s.On != nil && !slices.Contains(s.On, k):
		return fmt.Sprintf("Harness.On leaves out %s", k)
	default:
		return fmt.Sprintf("no case applies to %s", k)
	}
}

// runCase runs one case on tb. shared has the servers for a case that needs none of its own.
func (s *Suite) runCase(tb testing.TB, c *Case, kind Kind, shared *Server) {
	tb.Helper()
	tb.Cleanup(func() {
		if !tb.Skipped() { // as by a skip of Dial
			s.matrix.ran(Cell{c.Name, kind})
		}
	})
	srv := shared
	if srv == nil || c.Own {
		srv = start(tb, kind, c.Nodes)
		tb.Cleanup(func() { leavesNoConnection(tb, srv) })
	}
	s.RunOn(tb, c, srv)
}

// RunOn runs one case on srv.
func (s *Suite) RunOn(tb testing.TB, c *Case, srv *Server) {
	tb.Helper()
	t := newT(tb, s, srv)
	t.LeavesKeys = c.LeavesKeys
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("why this case: %s (%s)\nrun it again: %s%s", c.Why, c.Proves, again(tb), srv.story())
		}
	})
	c.Run(t)
}

// RunMutant runs one case on tb, and may fail it. A case on Memory needs a bubble.
func (s *Suite) RunMutant(tb testing.TB, c *Case, kind Kind) {
	t := newT(tb, s, start(tb, kind, c.Nodes))
	t.LeavesKeys = c.LeavesKeys
	c.Run(t)
}

// chosen reports whether the command line may leave out cases: by a pattern of subtests, or -failfast.
func chosen() bool {
	for _, name := range [...]string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && strings.Contains(f.Value.String(), "/") {
			return true
		}
	}
	f := flag.Lookup("test.failfast")
	return f != nil && f.Value.String() == "true"
}

// Cell is one case on one kind of server.
type Cell struct {
	Name string
	Kind Kind
}

func (c Cell) String() string { return string(c.Kind) + "/" + c.Name }

// Demanded returns the cells to be run.
func (s *Suite) Demanded() (list []Cell) {
	for _, kind := range Kinds {
		for _, c := range s.on(kind) {
			list = append(list, Cell{c.Name, kind})
		}
	}
	return list
}

// matrix records the executed cells. The zero matrix is empty.
type matrix struct {
	mu       sync.Mutex
	executed map[Cell]bool
	skipped  []Kind // kinds without a server program to run
}

func (m *matrix) ran(c Cell) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.executed == nil {
		m.executed = map[Cell]bool{}
	}
	m.executed[c] = true
}

func (m *matrix) skip(k Kind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.skipped = append(m.skipped, k)
}

// missing returns the demanded cells that did not run, though there was a server.
func (m *matrix) missing(demanded []Cell) (list []Cell) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range demanded {
		if !m.executed[c] && !slices.Contains(m.skipped, c.Kind) {
			list = append(list, c)
		}
	}
	return list
}

// summary counts the cells by kind.
func (s *Suite) summary() string {
	m := &s.matrix
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := make([]string, len(Kinds))
	for i, kind := range Kinds {
		n := 0
		for c := range m.executed {
			if c.Kind == kind {
				n++
			}
		}
		counts[i] = fmt.Sprintf("%d on %s", n, kind)
		if slices.Contains(m.skipped, kind) {
			counts[i] += " (no server program)"
		}
	}
	text := fmt.Sprintf("%s: of %d cases ran %s", cmp.Or(s.Name, s.client), len(s.Cases), strings.Join(counts, ", "))
	if len(s.Lacks) > 0 {
		text += fmt.Sprintf("; lacks %v", s.Lacks)
	}
	return text
}

// connected records a driver's text about its client, for reports.
func (s *Suite) connected(client string) {
	s.matrix.mu.Lock()
	defer s.matrix.mu.Unlock()
	s.client = cmp.Or(s.client, client)
}
