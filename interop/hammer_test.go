package interop

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/interop/peer"
)

// tally counts the cycles of acquire and release, and how often two held the lock at once.
type tally struct {
	ours, theirs, violations int
	ourWait, theirWait       time.Duration // the longest
}

// String returns the cycles as in the table.
func (t tally) String() string { return fmt.Sprintf("%d : %d", t.ours, t.theirs) }

// waits returns the longest waits as in the table.
func (t tally) waits() string { return fmt.Sprintf("%v : %v", t.ourWait, t.theirWait) }

// alone is held by a hammer: beside others it would show who gets the cores.
var alone sync.Mutex

// hammer lets two processes of each side contend for one name for two seconds, ours with a pause behind
// each cycle. They count with the server how many are inside.
func (p *pair) hammer(t *testing.T, pause time.Duration) (sum tally) {
	t.Helper()
	const name = "hammer"
	addr := p.server.Addr()
	ours := [2]*peer.Process{p.startOurs(t, p.client.Name, addr), p.startOurs(t, p.client.Name, addr)}
	theirs := [2]*peer.Process{p.theirs, p.start(t, addr)}
	alone.Lock()
	defer alone.Unlock()
	until := time.Now().Add(2 * time.Second).UnixMilli()
	for i := range ours {
		ours[i].Send("hammer", name, ttl.Milliseconds(), until, pause.Milliseconds())
		theirs[i].Send("hammer", name, ttl.Milliseconds(), until)
	}
	collect := func(from *peer.Process, cycles *int, wait *time.Duration) {
		t.Helper()
		h, err := from.Answer().Hammered()
		check.Must(t, err)
		*cycles += h.Cycles
		*wait = max(*wait, h.Longest)
		sum.violations += h.Violations
	}
	for i := range ours {
		collect(ours[i], &sum.ours, &sum.ourWait)
		collect(theirs[i], &sum.theirs, &sum.theirWait)
	}
	check.Equal(t, fmt.Sprintf("violations in %d cycles of ours and %d of theirs", sum.ours, sum.theirs), sum.violations, 0)
	check.AtLeast(t, "cycles", sum.ours+sum.theirs, 1)
	t.Logf("%v; %s", sum, sum.waits())
	return sum
}
