package redlock

import (
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

// at returns a time relative to viewed.
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
		check.Equal(t, tt.name+": live", v.isLive(&tt.node), tt.live)
		check.Equal(t, tt.name+": counts", v.counts(&tt.node), tt.counts)
		check.Equal(t, tt.name+": may count", v.mayCount(&tt.node), tt.mayCount)
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
		check.Equal(t, tt.name+": lost", v.isLost(), tt.lost)
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
		what := fmt.Sprintf("until %v, it lasts until %v", tt.end, tt.deadline)
		check.Equal(t, "a quorum "+what, viewOf(node, node).lasts(tt.deadline), tt.want)
		check.Equal(t, "one of two nodes "+what, viewOf(node, nodeView{}).lasts(tt.deadline), false)
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
	fence, live := v.highestLive()
	check.Equal(t, "token", fence, 5)
	check.Equal(t, "live nodes", live, 2)
}

func TestRenewedSince(t *testing.T) {
	t.Parallel()
	renewed := func(d, ends time.Duration) nodeView {
		n := until(ends)
		n.renewed = at(d)
		return n
	}
	v := viewOf(renewed(0, 9), renewed(1, 9), renewed(-1, 9), renewed(1, -1), nodeView{renewed: at(1)}, until(9))
	check.Equal(t, "live nodes whose renewal is no earlier", v.renewedSince(at(0)), 2)
}

func TestNoneTookOver(t *testing.T) {
	t.Parallel()
	took, expired := nodeView{takenOver: true}, nodeView{expired: at(-1)}
	renewed := nodeView{held: true, named: true, renewed: at(0)}
	before := nodeView{held: true, named: true, renewed: at(-1)}
	unnamed := nodeView{held: true, renewed: at(-1)}
	for _, tt := range []struct {
		name  string
		nodes []nodeView
		want  bool
	}{
		{"all renewed", []nodeView{renewed, renewed, renewed}, true},
		{"one was renewed before", []nodeView{renewed, renewed, before}, true},
		{"two were renewed before", []nodeView{renewed, before, before}, false},
		{"no Handle names them", []nodeView{renewed, unnamed, unnamed}, true},
		{"one was taken over, one expired", []nodeView{renewed, took, expired}, false},
		{"one expired, one was renewed before", []nodeView{renewed, before, expired}, false},
	} {
		check.Equal(t, tt.name, viewOf(tt.nodes...).noneTookOver(at(0)), tt.want)
	}
}

func TestMovedDeadline(t *testing.T) {
	t.Parallel()
	never := time.Time{}
	for _, tt := range []struct {
		name                     string
		deadline, end, aim, want time.Time
	}{
		{"forward", at(3), at(5), at(5), at(5)},
		{"the quorum ends before", at(3), at(4), at(5), at(4)},
		{"no further than asked for", at(3), at(6), at(5), at(5)},
		{"never back", at(7), at(5), at(5), at(7)},
		{"never back, though the quorum lasts", at(7), at(9), at(5), at(7)},
		{"it never ends", never, at(5), at(5), never},
		{"the quorum never ends", at(3), never, at(5), never},
	} {
		if got := movedDeadline(tt.deadline, tt.end, tt.aim); !got.Equal(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got.Sub(viewed), tt.want.Sub(viewed))
		}
	}
}

// stepped returns a time read before the wall clock was set forward by step.
func stepped(at time.Time, step time.Duration) time.Time {
	type fields struct { // of time.Time, when it has both clocks
		wall uint64
		mono int64
		loc  *time.Location
	}
	earlier := at.Add(-step)
	(*fields)(unsafe.Pointer(&earlier)).mono = (*fields)(unsafe.Pointer(&at)).mono
	return earlier
}

func TestLeaseToAsk(t *testing.T) {
	t.Parallel()
	const asked = time.Minute
	for _, tt := range []struct {
		name     string
		ttl      time.Duration
		deadline time.Time
		want     time.Duration
	}{
		{"no Deadline", asked, time.Time{}, asked},
		{"the TTL is longer", asked, at(asked / 2), asked},
		{"the Deadline is later, and the drift", asked, at(64 * asked), 65*asked + 10*time.Millisecond},
		{"until the Deadline alone", 0, at(64 * asked), 65*asked + 10*time.Millisecond},
		{"not more than a lease may be", asked, at(locker.MaxTTL), locker.MaxTTL},
		{"the wall clock was set forward", asked, stepped(at(64*asked), 32*asked), 65*asked + 10*time.Millisecond},
		{"the wall clock was set forward past it", asked, stepped(at(64*asked), 99*asked), 65*asked + 10*time.Millisecond},
		{"the wall clock was set back", asked, stepped(at(64*asked), -32*asked), 65*asked + 10*time.Millisecond},
	} {
		check.Equal(t, tt.name, leaseToAsk(tt.ttl, tt.deadline, viewed), tt.want)
	}
}

// The rest of a lease is the smaller one by the two clocks.
func TestRemaining(t *testing.T) {
	t.Parallel()
	for step, want := range map[time.Duration]time.Duration{0: time.Hour, time.Minute: 59 * time.Minute, -time.Minute: time.Hour} {
		check.Equal(t, "left after a step of "+step.String(), remaining(stepped(at(time.Hour), step), viewed), want)
	}
}

func TestAsLongAgain(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		0: minGrace, minGrace: minGrace, time.Second / 2: time.Second / 2, time.Second: time.Second, time.Hour: time.Second,
	} {
		check.Equal(t, "wait after "+took.String(), asLongAgain(took, time.Second), want)
	}
}

func TestOutcomeOfNode(t *testing.T) {
	t.Parallel()
	minted := until(1)
	minted.fence = 6
	for _, tt := range []struct {
		name  string
		fence int64
		node  nodeView
		want  error
	}{
		{"it gave its lock", 0, until(1), nil},
		{"its lock has ended", 0, until(-1), errEnded},
		{"it is asked", 0, nodeView{asking: true}, errUnanswered},
		{"nothing was sent", 0, nodeView{asking: true, queued: true}, errStalled},
		{"it failed", 0, nodeView{err: errNodeDown}, errNodeDown},
		{"its counter is being raised", 7, minted, errUnanswered},
		{"its counter is at the token", 6, minted, nil},
		{"its counter was not raised", 7, nodeView{held: true, exclusive: true, fence: 6, err: errNodeDown}, errNodeDown},
	} {
		v := viewOf()
		v.fenced, v.fence = tt.fence > 0, tt.fence
		if got := v.outcome(&tt.node); !errors.Is(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err             error
		acquire, resume bool
	}{
		{nil, false, false},
		{errNodeDown, false, false},
		{errUnanswered, false, false},
		{&locker.ContentionError{}, true, true},
		{locker.ErrNotHeld, false, true},
		{locker.ErrLost, false, false}, // it had given its lock
	} {
		if a, r := refuses(tt.err, false), refuses(tt.err, true); a != tt.acquire || r != tt.resume {
			t.Errorf("%v refuses an acquire: %v, a resume: %v; want %v, %v", tt.err, a, r, tt.acquire, tt.resume)
		}
	}
}

func TestSameServer(t *testing.T) {
	t.Parallel()
	refusedBy := func(owner string) nodeView { return nodeView{err: &locker.ContentionError{Owner: owner}} }
	for _, tt := range []struct {
		name        string
		nodes       []nodeView
		node, other int
		found       bool
	}{
		{"another holds it", []nodeView{until(1), refusedBy("another"), {}}, 0, 0, false},
		{"a holder without a name", []nodeView{until(1), refusedBy(""), {}}, 0, 0, false},
		{"refused by this attempt", []nodeView{{}, refusedBy("me"), until(1)}, 1, 2, true},
		{"the one that gave it has not answered", []nodeView{{asking: true}, refusedBy("me"), {}}, 1, -1, true},
	} {
		node, other, found := sameServer(tt.nodes, "me")
		if node != tt.node || other != tt.other || found != tt.found {
			t.Errorf("%s: %d, %d, %v, want %d, %d, %v", tt.name, node, other, found, tt.node, tt.other, tt.found)
		}
	}
}

func TestModeAfterConversion(t *testing.T) {
	t.Parallel()
	exclusive, shared, unsure := locker.Exclusive, locker.Shared, unknownMode
	var held error = &locker.ContentionError{}
	for _, tt := range []struct {
		name   string
		before locker.Mode
		to     locker.Mode
		err    error
		want   locker.Mode
	}{
		{"upgraded", shared, locker.Exclusive, nil, exclusive},
		{"downgraded", exclusive, locker.Shared, nil, shared},
		{"upgraded, after an unknown outcome", unsure, locker.Exclusive, nil, exclusive},
		{"downgraded, after an unknown outcome", unsure, locker.Shared, nil, shared},
		{"in flight", exclusive, locker.Shared, errUnanswered, unsure},
		{"an upgrade without an answer", shared, locker.Exclusive, locker.ErrUnknownOutcome, unsure},
		{"an upgrade that others refuse", shared, locker.Exclusive, held, shared},
		{"refused, after an unknown outcome", unsure, locker.Exclusive, held, shared},
		{"not supported", shared, locker.Exclusive, errors.ErrUnsupported, shared},
		{"not supported, after an unknown outcome", unsure, locker.Shared, errors.ErrUnsupported, unsure},
		{"asked for what it is", exclusive, locker.Exclusive, locker.ErrUnknownOutcome, exclusive},
		{"shared, and asked for that", shared, locker.Shared, errNodeDown, shared},
	} {
		check.Equal(t, tt.name, modeAfter(tt.before, tt.to, tt.err), tt.want)
	}
}
