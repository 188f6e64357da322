// Package suitetest tests a suite: it runs cases on what is flawed, and demands that they fail.
package suitetest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
)

// impatient is how long a case that is to fail waits for what does not come.
const impatient = 4 * time.Second

// slots bounds how many cases run at once, nodeSlots how many with several servers; they mostly
// wait.
var slots, nodeSlots = make(chan struct{}, 24), make(chan struct{}, 8)

// Mutant is something flawed, what it was made of, and the cases that must catch the flaw.
type Mutant struct {
	Name          string
	Flawed, Sound *suite.Suite
	Caught        []string
}

// failing runs the cases with these names, at once and on servers of their own, and returns those
// that failed.
func failing(s *suite.Suite, names []string) map[string]*suite.Recorder {
	var wg sync.WaitGroup
	var mu sync.Mutex
	failed := map[string]*suite.Recorder{}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		c := s.Find(name, suite.Miniredis)
		if c == nil {
			continue
		}
		slots := slots
		if c.Nodes > 0 {
			slots = nodeSlots
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r := suite.Record(context.Background(), name, func(tb testing.TB) { s.RunMutant(tb, c, impatient) })
			if r.Failed() {
				mu.Lock()
				defer mu.Unlock()
				failed[name] = r
			}
		})
	}
	wg.Wait()
	return failed
}

// stillFailing returns those of the failed cases that fail again, twice, with less beside them. On a
// busy machine a case may be too slow.
func stillFailing(s *suite.Suite, failed map[string]*suite.Recorder) map[string]*suite.Recorder {
	for range 2 {
		if len(failed) == 0 {
			break
		}
		failed = failing(s, slices.Collect(maps.Keys(failed)))
	}
	return failed
}

// catching runs the cases that caught nothing again, up to twice, with less beside them. On a busy
// machine what a flaw needs may be over before the case comes to it.
func catching(
	t *testing.T, s *suite.Suite, names []string, caught map[string]*suite.Recorder,
) map[string]*suite.Recorder {
	t.Helper()
	for range 2 {
		var missed []string
		for _, name := range names {
			if caught[name] == nil {
				missed = append(missed, name)
			}
		}
		if len(missed) == 0 {
			break
		}
		t.Logf("not caught at first by %q", missed)
		maps.Copy(caught, failing(s, missed))
	}
	return caught
}

// Catch demands that each mutant fails the cases that were made for its flaw, and that these pass
// without the flaw. All run at once, and then report one by one.
func Catch(t *testing.T, mutants []Mutant) {
	t.Helper()
	type verdict struct{ flawed, sound map[string]*suite.Recorder }
	verdicts := make([]verdict, len(mutants))
	var wg sync.WaitGroup
	for i, m := range mutants {
		wg.Go(func() { verdicts[i].flawed = failing(m.Flawed, m.Caught) })
		wg.Go(func() { verdicts[i].sound = failing(m.Sound, m.Caught) })
	}
	wg.Wait()
	for i, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			for name, r := range stillFailing(m.Sound, verdicts[i].sound) {
				t.Errorf("without the flaw too %q fails: %s", name, r.First())
			}
			caught := catching(t, m.Flawed, m.Caught, verdicts[i].flawed)
			for _, name := range m.Caught {
				if m.Flawed.Find(name, suite.Miniredis) == nil {
					t.Errorf("there is no case %q that applies", name)
				}
				if r := caught[name]; r != nil {
					t.Logf("caught by %q: %s", name, r.First())
				} else {
					t.Errorf("not caught by %q", name)
				}
			}
		})
	}
}
