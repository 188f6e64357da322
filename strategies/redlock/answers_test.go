package redlock

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var (
	errNodeDown         = errors.New("connection refused")
	errNodeDenies error = &driver.ServerError{Text: "NOPERM this user has no permissions"} // it lasts
)

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

func TestReleaseVerdict(t *testing.T) {
	t.Parallel()
	notHeld, late := locker.ErrNotHeld, errUnanswered
	for _, tt := range []struct {
		name     string
		outcomes []error // of three nodes, of which two are needed
		want     error   // nil: released
	}{
		{"all released", []error{nil, nil, nil}, nil},
		{"a quorum released", []error{nil, nil, errNodeDown}, nil},
		{"two did not hold it", []error{nil, notHeld, notHeld}, locker.ErrLost},
		{"none held it", []error{notHeld, notHeld, notHeld}, locker.ErrLost},
		{"one that has not answered may hold it", []error{nil, notHeld, late}, locker.ErrUnknownOutcome},
		{"two deny it, one has not answered", []error{errNodeDenies, errNodeDenies, late}, locker.ErrUnknownOutcome},
		{"one failed", []error{nil, notHeld, errNodeDown}, errNodeDown},
	} {
		err := answersOf(true, tt.outcomes...).releaseVerdict()
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if !errors.Is(tt.want, locker.ErrNotHeld) && errors.Is(err, locker.ErrNotHeld) {
			t.Errorf("%s: %v is no loss", tt.name, err)
		}
	}
}

func TestUpgradeVerdict(t *testing.T) {
	t.Parallel()
	var held error = &locker.ContentionError{Owner: "another"}
	missed := errors.New("1 of 3 nodes did")
	for _, tt := range []struct {
		name      string
		outcomes  []error // of three nodes, of which two are needed
		missed    error
		want      error
		contended bool
	}{
		{"two refuse", []error{held, held, nil}, missed, locker.ErrNotAcquired, true},
		{"one refuses, and would do", []error{held, errNodeDown, nil}, missed, locker.ErrNotAcquired, true},
		{"one refuses, two failed", []error{held, errNodeDown, errNodeDown}, missed, missed, false},
		{"all failed", []error{errNodeDown, errNodeDown, errNodeDown}, missed, missed, false},
		{"lost, whatever refused", []error{held, held, locker.ErrNotHeld}, locker.ErrLost, locker.ErrLost, false},
		{"a quorum did not last", []error{nil, nil, errNodeDown}, missed, missed, false},
	} {
		err := answersOf(true, tt.outcomes...).upgradeVerdict(tt.missed)
		if !errors.Is(err, tt.want) || errors.Is(err, locker.ErrNotAcquired) != tt.contended {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestContentionReport(t *testing.T) {
	t.Parallel()
	heldBy := func(owner string, left time.Duration, channel string) error {
		e := &locker.ContentionError{Name: "at the node", Owner: owner, Note: "note of " + owner, Left: left, RetryAfter: 2 * left}
		if channel != "" {
			e.Channel = driver.NewChannel(anyDriver{}, channel)
		}
		return e
	}
	ordered := &locker.ContentionError{Owner: "a", Ordered: true}
	for _, tt := range []struct {
		name     string
		outcomes []error // of nodes of which three are needed
		owner    string
		left     time.Duration
		channel  string
		ordered  bool
	}{
		{"the holder that most name", []error{heldBy("a", 1, ""), heldBy("b", 2, ""), heldBy("b", 3, "")}, "b", 3, "", false},
		{"the first of equals", []error{heldBy("a", 1, ""), heldBy("b", 2, ""), heldBy("c", 3, "")}, "a", 3, "", false},
		{"one node more is needed", []error{nil, nil, heldBy("a", 4, ""), heldBy("a", 2, ""), heldBy("a", 6, "")}, "a", 2, "", false},
		{"too few leases are known", []error{heldBy("a", 4, ""), heldBy("a", 0, ""), heldBy("a", 2, "")}, "a", 0, "", false},
		{"a channel of that holder's", []error{heldBy("a", 1, "wake:0"), heldBy("b", 2, ""), heldBy("b", 3, "wake:2")}, "b", 3, "wake:2", false},
		{"the first of its channels", []error{heldBy("b", 1, "wake:0"), heldBy("b", 2, "wake:1"), heldBy("b", 3, "wake:2")}, "b", 3, "wake:0", false},
		{"no channel of another's", []error{heldBy("a", 1, "wake:0"), heldBy("b", 2, ""), heldBy("b", 3, "")}, "b", 3, "", false},
		{"a node that orders the modes", []error{ordered, heldBy("a", 2, ""), heldBy("a", 3, "")}, "a", 0, "", true},
		{"failures say nothing", []error{errNodeDown, heldBy("a", 2, ""), nil, heldBy("a", 3, "")}, "a", 3, "", false},
	} {
		answers := answersOf(false, tt.outcomes...)
		answers.quorum = 3
		report := answers.contention()
		if report.Name != "job" || report.Jitter != time.Second || report.Owner != tt.owner || report.Note != "note of "+tt.owner && !tt.ordered {
			t.Errorf("%s: %+v, want %q", tt.name, report, tt.owner)
		}
		if report.Left != tt.left || report.RetryAfter != 2*tt.left || report.Channel.Name() != tt.channel || report.Ordered != tt.ordered {
			t.Errorf("%s: %v left, again after %v, channel %q, ordered: %v; want %v, %v, %q, %v", tt.name,
				report.Left, report.RetryAfter, report.Channel.Name(), report.Ordered, tt.left, 2*tt.left, tt.channel, tt.ordered)
		}
	}
}

func TestKthShortest(t *testing.T) {
	t.Parallel()
	all := []time.Duration{5, 0, 3, -1, 9}
	for k, want := range []time.Duration{0, 3, 5, 9, 0, 0} {
		check.Equal(t, "duration", kthShortest(all, k), want)
	}
}

// anyDriver stands for the driver of a channel that is only named.
type anyDriver struct{ driver.Driver }
