package resolve

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

var errLost = errors.New("lost")

// TestEvict checks what a residue beyond the bound replaces.
func TestEvict(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		waiting string // classes of residues that wait
		evicted string
	}{
		{waiting: "known, silent known, silent, first, again", evicted: "again"},
		{waiting: "known, silent known, silent, first", evicted: "silent"},
		{waiting: "known, silent known, first", evicted: "silent known"},
		{waiting: "known, first"},
	} {
		t.Run(tt.waiting, func(t *testing.T) {
			t.Parallel()
			c := newCleaner(nil)
			waiting := map[string]*residue{}
			for class := range strings.SplitSeq(tt.waiting, ", ") {
				r := &residue{
					Residue: Residue{Sends: new(Unanswered), Call: func() driver.Call { return driver.Call{Keys: []string{class}} }},
					silent:  strings.HasPrefix(class, "silent"),
				}
				r.Sends.Add(errLost, nil)
				if strings.HasSuffix(class, "known") {
					r.Sends.Held()
				}
				if class != "first" {
					r.tries = 1
				}
				waiting[class] = r
				c.add(r)
			}
			c.count = maxResidues
			c.add(&residue{Residue: Residue{Sends: new(Unanswered)}, due: time.Now()})
			for class, r := range waiting {
				if evicted := r.queue == nil; evicted != (class == tt.evicted) {
					t.Errorf("%s: evicted %v", class, evicted)
				}
			}
			if want := maxResidues + 1 - min(len(tt.evicted), 1); c.count != want {
				t.Errorf("%d residues, want %d", c.count, want)
			}
		})
	}
}
