package redlock

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var (
	errNodeDown         = errors.New("connection refused")
	errNodeDenies error = &driver.ServerError{Text: "NOPERM this user has no permissions"} // it lasts
)

func TestAsLongAgain(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		0: minGrace, minGrace: minGrace, time.Second / 2: time.Second / 2, time.Second: time.Second, time.Hour: time.Second,
	} {
		if got := asLongAgain(took, time.Second); got != want {
			t.Errorf("after %v it waits %v, want %v", took, got, want)
		}
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

// answersOf is what nodes answered to an attempt of which a majority is needed, in their order.
func answersOf(resume bool, outcomes ...error) *nodeAnswers {
	t := &nodeAnswers{name: "job", nodes: len(outcomes), quorum: len(outcomes)/2 + 1, jitter: time.Second}
	for i, err := range outcomes {
		t.add(&quorumNode{index: i}, err, refuses(err, resume))
	}
	return t
}

func TestVerdictOfAttempt(t *testing.T) {
	t.Parallel()
	var held error = &locker.ContentionError{Owner: "another"}
	late := errUnanswered
	for _, tt := range []struct {
		name      string
		outcomes  []error // of five nodes, of which three are needed
		contended bool
		mayChange bool
	}{
		{"all refuse", []error{held, held, held, held, held}, true, false},
		{"three refuse, two have not answered", []error{held, held, held, late, late}, true, false},
		{"two refuse, one gave its lock", []error{held, held, nil, errNodeDown, errNodeDown}, true, false},
		{"one refuses, one gave its lock", []error{held, nil, errNodeDown, errNodeDown, errNodeDown}, false, false},
		{"one that has not answered may refuse", []error{held, nil, late, errNodeDown, errNodeDown}, false, true},
		{"only refusals so far, two may be enough", []error{held, held, nil, late, late}, true, false},
		{"none refuses", []error{nil, nil, late, errNodeDown, errNodeDown}, false, false},
		{"all failed", []error{errNodeDown, errNodeDown, errNodeDown, errNodeDown, errNodeDown}, false, false},
		{"none has answered", []error{late, late, late, late, late}, false, false},
		{"one lost what it gave", []error{held, held, locker.ErrLost, late, errNodeDown}, false, true},
	} {
		err, mayChange := answersOf(false, tt.outcomes...).acquireVerdict()
		if errors.Is(err, locker.ErrNotAcquired) != tt.contended || mayChange != tt.mayChange {
			t.Errorf("%s: %v, may change: %v; want contention: %v, may change: %v", tt.name, err, mayChange, tt.contended, tt.mayChange)
		}
		if _, outage := errors.AsType[*QuorumError](err); outage == tt.contended || errors.Is(err, locker.ErrNotHeld) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestVerdictOfResume(t *testing.T) {
	t.Parallel()
	late := errUnanswered
	for _, tt := range []struct {
		name      string
		outcomes  []error // of three nodes, of which two are needed
		tookOver  bool
		want, not error
		mayChange bool
	}{
		{"two hold nothing", []error{locker.ErrNotHeld, locker.ErrNotHeld, late}, false, locker.ErrNotHeld, locker.ErrUnknownOutcome, false},
		{"two hold nothing, one was taken over", []error{locker.ErrNotHeld, locker.ErrNotHeld, nil}, true, locker.ErrUnknownOutcome, locker.ErrNotHeld, false},
		{"one that has not answered decides", []error{locker.ErrNotHeld, errNodeDown, late}, false, locker.ErrUnknownOutcome, locker.ErrNotHeld, true},
		{"two deny it, one has not answered", []error{errNodeDenies, errNodeDenies, late}, false, locker.ErrUnknownOutcome, locker.ErrNotHeld, false},
		{"two failed", []error{errNodeDown, errNodeDown, locker.ErrNotHeld}, false, errNodeDown, locker.ErrUnknownOutcome, false},
		{"two are held by others", []error{locker.ErrNotAcquired, locker.ErrNotAcquired, late}, false, locker.ErrNotHeld, locker.ErrNotAcquired, false},
		{"two took it over and lost it", []error{locker.ErrLost, locker.ErrLost, nil}, true, locker.ErrUnknownOutcome, locker.ErrNotHeld, false},
	} {
		err, mayChange := answersOf(true, tt.outcomes...).resumeVerdict(tt.tookOver)
		if !errors.Is(err, tt.want) || errors.Is(err, tt.not) || mayChange != tt.mayChange {
			t.Errorf("%s: %v, may change: %v; want %v and not %v, may change: %v", tt.name, err, mayChange, tt.want, tt.not, tt.mayChange)
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
