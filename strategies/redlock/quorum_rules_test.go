package redlock

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// at returns a time relative to the moment of the views in these tests.
func at(d time.Duration) time.Time { return viewed.Add(d) }

var viewed = time.Now()

// viewOf returns a view of an exclusive lock with a quorum of two and a timeout of a second.
func viewOf(nodes ...nodeView) *quorumView {
	return &quorumView{nodes: nodes, needed: 2, timeout: time.Second, now: viewed}
}

// until is a node that counts for d.
func until(d time.Duration) nodeView { return nodeView{held: true, exclusive: true, deadline: at(d)} }

func TestNodeCountsTowardQuorum(t *testing.T) {
	t.Parallel()
	errRaise := errors.New("the raise failed")
	for _, tt := range []struct {
		name                   string
		mode                   locker.Mode
		fenced                 bool
		fence                  int64
		node                   nodeView
		live, counts, mayCount bool
	}{
		{name: "nothing there"},
		{name: "an acquire is in flight", node: nodeView{asking: true}, mayCount: true},
		{name: "refused", node: nodeView{err: locker.ErrNotAcquired}},
		{name: "exclusive", node: nodeView{held: true, exclusive: true, deadline: at(1)}, live: true, counts: true},
		{name: "it never ends", node: nodeView{held: true, exclusive: true}, live: true, counts: true},
		{name: "it ends now", node: nodeView{held: true, exclusive: true, deadline: at(0)}},
		{name: "it has ended", node: nodeView{held: true, exclusive: true, deadline: at(-1)}},
		{name: "shared, of an exclusive lock", node: nodeView{held: true, deadline: at(1)}},
		{name: "shared", mode: locker.Shared, node: nodeView{held: true, deadline: at(1)}, live: true, counts: true},
		{name: "exclusive, of a shared lock", mode: locker.Shared, node: nodeView{held: true, exclusive: true}, live: true, counts: true},
		{name: "no token is known yet", fenced: true, node: nodeView{held: true, exclusive: true, fence: 7}, live: true, mayCount: true},
		{name: "its counter is behind", fenced: true, fence: 7, node: nodeView{held: true, exclusive: true, fence: 6}, live: true, mayCount: true},
		{name: "its counter was not raised", fenced: true, fence: 7, node: nodeView{held: true, exclusive: true, fence: 6, err: errRaise}, live: true},
		{name: "its counter is at the token", fenced: true, fence: 7, node: nodeView{held: true, exclusive: true, fence: 7}, live: true, counts: true},
		{name: "its counter is ahead", fenced: true, fence: 7, node: nodeView{held: true, exclusive: true, fence: 8}, live: true, counts: true},
		{name: "it is asked again", node: nodeView{asking: true, held: true, exclusive: true, deadline: at(-1)}, mayCount: true},
	} {
		v := viewOf()
		v.mode, v.fenced, v.fence = tt.mode, tt.fenced, tt.fence
		if got := v.isLive(&tt.node); got != tt.live {
			t.Errorf("%s: live is %v, want %v", tt.name, got, tt.live)
		}
		if got := v.counts(&tt.node); got != tt.counts {
			t.Errorf("%s: counts is %v, want %v", tt.name, got, tt.counts)
		}
		if got := v.mayCount(&tt.node); got != tt.mayCount {
			t.Errorf("%s: may count is %v, want %v", tt.name, got, tt.mayCount)
		}
	}
}

func TestQuorumEnds(t *testing.T) {
	t.Parallel()
	endless := nodeView{held: true, exclusive: true}
	asked := func(d time.Duration) nodeView { return nodeView{asking: true, askedAt: at(d)} }
	none := at(-time.Hour) // there is no quorum
	for _, tt := range []struct {
		name      string
		nodes     []nodeView
		end, loss time.Time
		lost      bool
	}{
		{"nothing is held", make([]nodeView, 3), none, none, true},
		{"the second latest", []nodeView{until(3), until(9), until(5)}, at(5), at(5), false},
		{"one has ended", []nodeView{until(3), until(9), until(-5)}, at(3), at(3), false},
		{"two have ended", []nodeView{until(3), until(-1), until(0)}, none, none, true},
		{"one never ends", []nodeView{endless, until(9), until(5)}, at(9), at(9), false},
		{"two never end", []nodeView{endless, endless, until(5)}, time.Time{}, time.Time{}, false},
		{"one is asked", []nodeView{until(9), asked(-5), {}}, none, at(9), false},
		{"one that is asked ends first", []nodeView{until(time.Hour), asked(-5), {}}, none, at(time.Second - 5), false},
		{"one does not answer", []nodeView{until(9), asked(-time.Second), {}}, none, at(0), true},
		{"one is asked without doubt", []nodeView{until(9), {asking: true}, {}}, none, time.Time{}.Add(time.Second), true},
		{"one may be taken over", []nodeView{until(9), until(9), {takenOver: true}}, at(9), at(9), false},
		{"two may be taken over", []nodeView{until(9), until(9), {takenOver: true}, {expired: at(-1)}}, at(9), none, true},
		{"one was restored after", []nodeView{until(9), {held: true, exclusive: true, takenOver: true}, {expired: at(-1)}}, at(9), none, true},
	} {
		v := viewOf(tt.nodes...)
		if end, ok := v.end(); ok == tt.end.Equal(none) || ok && !end.Equal(tt.end) {
			t.Errorf("%s: it ends at %v, %v, want %v", tt.name, end, ok, tt.end)
		}
		if end, ok := v.lossTime(); ok == tt.loss.Equal(none) || ok && !end.Equal(tt.loss) {
			t.Errorf("%s: it is lost at %v, %v, want %v", tt.name, end, ok, tt.loss)
		}
		if got := v.isLost(); got != tt.lost {
			t.Errorf("%s: lost is %v, want %v", tt.name, got, tt.lost)
		}
	}
}

func TestQuorumLasts(t *testing.T) {
	t.Parallel()
	never := time.Time{}
	for _, tt := range []struct {
		end, deadline time.Time
		want          bool
	}{
		{at(5), at(5), true}, {at(6), at(5), true}, {at(4), at(5), false}, {never, at(5), true}, {at(5), never, false}, {never, never, true},
	} {
		node := nodeView{held: true, exclusive: true, deadline: tt.end}
		if got := viewOf(node, node).lasts(tt.deadline); got != tt.want {
			t.Errorf("a quorum until %v lasts until %v: %v, want %v", tt.end, tt.deadline, got, tt.want)
		}
		if viewOf(node, nodeView{}).lasts(tt.deadline) {
			t.Errorf("one of two nodes lasts until %v", tt.deadline)
		}
	}
}

func TestHighestLiveToken(t *testing.T) {
	t.Parallel()
	token := func(fence int64, d time.Duration) nodeView {
		n := until(d)
		n.fence = fence
		return n
	}
	v := viewOf(token(3, 1), token(9, -1), token(5, 1), nodeView{held: true, fence: 11, deadline: at(1)}, nodeView{})
	if fence, live := v.highestLive(); fence != 5 || live != 2 {
		t.Errorf("token %d of %d live nodes, want 5 of 2", fence, live)
	}
}
