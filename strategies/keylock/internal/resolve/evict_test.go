package resolve

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

var errLost = errors.New("lost")

// TestEvict checks which residue gives way to one beyond the bound.
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
					Residue: Residue{Sends: new(Unanswered)},
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
				check.Equal(t, class+": evicted", r.queue == nil, class == tt.evicted)
			}
			check.Equal(t, "residues", c.count, maxResidues+1-min(len(tt.evicted), 1))
		})
	}
}
