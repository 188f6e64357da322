package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/interop/peer"
)

// tally counts the cycles of acquire and release, and how often two held the lock at once.
type tally struct{ ours, theirs, violations int }

// String returns the cycles as in the table.
func (t tally) String() string { return fmt.Sprintf("%d : %d", t.ours, t.theirs) }

// hammer lets two processes of each side contend for one name for two seconds. They count with the
// server how many are inside.
func (p *pair) hammer(t *testing.T) (sum tally) {
	t.Helper()
	const name = "hammer"
	addr := p.server.Addr()
	ours := [2]*peer.Process{p.startOurs(t, p.client.Name, addr), p.startOurs(t, p.client.Name, addr)}
	theirs := [2]*peer.Process{p.theirs, p.start(t, addr)}
	until := time.Now().Add(2 * time.Second).UnixMilli()
	for i := range ours {
		ours[i].Send("hammer", name, ttl.Milliseconds(), until)
		theirs[i].Send("hammer", name, ttl.Milliseconds(), until)
	}
	collect := func(from *peer.Process, cycles *int) {
		t.Helper()
		n, violations, err := from.Answer().Cycles()
		check.Must(t, err)
		*cycles += n
		sum.violations += violations
	}
	for i := range ours {
		collect(ours[i], &sum.ours)
		collect(theirs[i], &sum.theirs)
	}
	check.Equal(t, fmt.Sprintf("violations in %d cycles of ours and %d of theirs", sum.ours, sum.theirs), sum.violations, 0)
	check.AtLeast(t, "cycles", sum.ours+sum.theirs, 1)
	t.Log(sum)
	return sum
}
