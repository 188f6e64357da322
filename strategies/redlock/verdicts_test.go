package redlock

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

var (
	errNodeDown         = errors.New("connection refused")
	errNodeDenies error = &driver.ServerError{Text: "NOPERM this user has no permissions"} // it lasts
)

// answersOf returns the nodes' answers, in their order, to an attempt that needs a majority.
func answersOf(resume bool, outcomes ...error) *nodeAnswers {
	t := &nodeAnswers{name: "job", nodes: len(outcomes), quorum: len(outcomes)/2 + 1, jitter: time.Second}
	for i, err := range outcomes {
		t.add(&quorumNode{index: i}, err, refuses(err, resume))
	}
	return t
}

// The verdict on an operation that needs a majority: the errors it matches and does not, and
// whether missing answers might change it.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	var refused error = &locker.ContentionError{Owner: "another"}
	held, down, denies, late, ended := locker.ErrNotAcquired, errNodeDown, errNodeDenies, errUnanswered, locker.ErrNotHeld
	lost, unknown, missed := locker.ErrLost, locker.ErrUnknownOutcome, errors.New("1 of 3 nodes did")
	acquire := (*nodeAnswers).acquireVerdict
	resume := func(a *nodeAnswers) (error, bool) { return a.resumeVerdict(false) }
	resumeSome := func(a *nodeAnswers) (error, bool) { return a.resumeVerdict(true) } // a node was taken over
	release := func(a *nodeAnswers) (error, bool) { return a.releaseVerdict(), false }
	upgrade := func(a *nodeAnswers) (error, bool) { return a.upgradeVerdict(missed), false }
	lostUpgrade := func(a *nodeAnswers) (error, bool) { return a.upgradeVerdict(lost), false }
	for _, tt := range []struct {
		name      string
		of        func(*nodeAnswers) (error, bool)
		outcomes  []error
		want      error // nil: it succeeded
		mayChange bool
	}{
		{"all refuse", acquire, []error{refused, refused, refused, refused, refused}, held, false},
		{"three refuse, two have not answered", acquire, []error{refused, refused, refused, late, late}, held, false},
		{"two refuse, one gave its lock", acquire, []error{refused, refused, nil, down, down}, held, false},
		{"one refuses, one gave its lock", acquire, []error{refused, nil, down, down, down}, down, false},
		{"one that has not answered may refuse", acquire, []error{refused, nil, late, down, down}, down, true},
		{"only refusals so far, two may be enough", acquire, []error{refused, refused, nil, late, late}, held, false},
		{"none refuses", acquire, []error{nil, nil, late, down, down}, down, false},
		{"all failed", acquire, []error{down, down, down, down, down}, down, false},
		{"none has answered", acquire, []error{late, late, late, late, late}, unknown, false},
		{"one lost what it gave", acquire, []error{refused, refused, lost, late, down}, down, true},
		{"two hold nothing", resume, []error{ended, ended, late}, ended, false},
		{"two hold nothing, one was taken over", resumeSome, []error{ended, ended, nil}, unknown, false},
		{"one that has not answered decides", resume, []error{ended, down, late}, unknown, true},
		{"two deny it, one has not answered", resume, []error{denies, denies, late}, unknown, false},
		{"two failed", resume, []error{down, down, ended}, down, false},
		{"two are held by others", resume, []error{held, held, late}, ended, false},
		{"two took it over and lost it", resumeSome, []error{lost, lost, nil}, unknown, false},
		{"all released", release, []error{nil, nil, nil}, nil, false},
		{"a quorum released", release, []error{nil, nil, down}, nil, false},
		{"two did not hold it", release, []error{nil, ended, ended}, lost, false},
		{"none held it", release, []error{ended, ended, ended}, lost, false},
		{"one that has not answered may hold it", release, []error{nil, ended, late}, unknown, false},
		{"two deny it, one has not answered", release, []error{denies, denies, late}, unknown, false},
		{"one failed", release, []error{nil, ended, down}, down, false},
		{"two refuse", upgrade, []error{refused, refused, nil}, held, false},
		{"one refuses, and would do", upgrade, []error{refused, down, nil}, held, false},
		{"one refuses, one holds nothing", upgrade, []error{refused, ended, nil}, held, false},
		{"one refuses, two failed", upgrade, []error{refused, down, down}, missed, false},
		{"all failed", upgrade, []error{down, down, down}, missed, false},
		{"lost, whatever refused", lostUpgrade, []error{refused, refused, ended}, lost, false},
		{"a quorum did not last", upgrade, []error{nil, nil, down}, missed, false},
	} {
		err, mayChange := tt.of(answersOf(len(tt.outcomes) == 3, tt.outcomes...))
		check.Error(t, tt.name, err, tt.want)
		check.Equal(t, tt.name+": may change", mayChange, tt.mayChange)
		for _, other := range []error{held, ended} {
			check.Equal(t, fmt.Sprintf("%s: %v matches %v", tt.name, err, other), errors.Is(err, other), errors.Is(tt.want, other))
		}
		if !slices.Contains(tt.outcomes, late) {
			check.Equal(t, tt.name+": unknown outcome", errors.Is(err, unknown), errors.Is(tt.want, unknown))
		}
	}
}

// An operation that misses the quorum waits as long again for the other answers, 20 ms at least.
func TestMissedOperationAwaitsTheRest(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tt := range []struct {
		answers []time.Duration // of the failures; all nodes are needed
		want    time.Duration
	}{
		{[]time.Duration{0}, 0}, {[]time.Duration{0, 15 * ms}, 15 * ms}, {[]time.Duration{0, 50 * ms}, 20 * ms},
		{[]time.Duration{30 * ms, 50 * ms}, 50 * ms}, {[]time.Duration{30 * ms, time.Second}, 60 * ms},
	} {
		synctest.Test(t, func(t *testing.T) {
			op, start := newOperation(len(tt.answers), len(tt.answers)), time.Now()
			for i := range tt.answers {
				op.expect(i)
			}
			op.start(func(i int) error {
				time.Sleep(tt.answers[i]) //nolint:forbidigo // fake time
				return errNodeDown
			})
			check.OK(t, op.wait(t.Context(), time.Minute, 0))
			check.Took(t, fmt.Sprint("an operation that fails after ", tt.answers), start, tt.want)
			check.Advance(time.Second) // background calls end
		})
	}
}

// A lasting error decides only if the other nodes are no quorum.
func TestDecisiveErrors(t *testing.T) {
	t.Parallel()
	closed, down, none := locker.ErrClosed, errNodeDown, errors.ErrUnsupported
	for _, tt := range []struct {
		name      string
		outcomes  []error // of three nodes; two are needed
		want, not error   // want is nil: no node decides
		transient bool
	}{
		{"all are closed", []error{closed, closed, closed}, closed, down, false},
		{"a quorum is closed", []error{down, closed, closed}, closed, down, false},
		{"one is closed", []error{closed, down, down}, down, closed, true},
		{"none can", []error{none, none, none}, none, down, false},
		{"one is closed, and no other failed", []error{closed, nil, nil}, closed, down, false},
		{"one is closed, and another refuses", []error{locker.ErrNotAcquired, nil, closed}, nil, closed, true},
		{"all are unreachable", []error{down, down, down}, down, closed, true},
		{"one has not answered", []error{errUnanswered, down, nil}, down, closed, true},
	} {
		err := answersOf(false, tt.outcomes...).quorumError()
		first, found := errors.AsType[*NodeError](err)
		if found != (tt.want != nil) || found && !errors.Is(first, tt.want) || errors.Is(err, tt.not) {
			t.Errorf("%s: the first of %v is %v, want %v, and none %v", tt.name, err, first, tt.want, tt.not)
		}
		check.Equal(t, tt.name+": transient", driver.Transient(err), tt.transient)
	}
}

func TestContentionReport(t *testing.T) {
	t.Parallel()
	heldBy := func(owner string, left time.Duration, channel string) error {
		e := &locker.ContentionError{Name: "at the node", Owner: owner, Note: "note of " + owner, Left: left, Hint: lease.Hint{RetryAfter: 2 * left}}
		if channel != "" {
			e.Channel = driver.NewChannel(anyDriver{}, channel)
		}
		return e
	}
	for _, tt := range []struct {
		name     string
		outcomes []error // three are needed
		owner    string
		left     time.Duration
		channel  string
	}{
		{"the holder that most name", []error{heldBy("a", 1, ""), heldBy("b", 2, ""), heldBy("b", 3, "")}, "b", 3, ""},
		{"the first of equals", []error{heldBy("a", 1, ""), heldBy("b", 2, ""), heldBy("c", 3, "")}, "a", 3, ""},
		{"one node more is needed", []error{nil, nil, heldBy("a", 4, ""), heldBy("a", 2, ""), heldBy("a", 6, "")}, "a", 2, ""},
		{"too few leases are known", []error{heldBy("a", 4, ""), heldBy("a", 0, ""), heldBy("a", 2, "")}, "a", 0, ""},
		{"a channel of that holder's", []error{heldBy("a", 1, "wake:0"), heldBy("b", 2, ""), heldBy("b", 3, "wake:2")}, "b", 3, "wake:2"},
		{"the first of its channels", []error{heldBy("b", 1, "wake:0"), heldBy("b", 2, "wake:1"), heldBy("b", 3, "wake:2")}, "b", 3, "wake:0"},
		{"no channel of another's", []error{heldBy("a", 1, "wake:0"), heldBy("b", 2, ""), heldBy("b", 3, "")}, "b", 3, ""},
		{"a quorum did it, and did not last", []error{nil, nil, nil, heldBy("a", 4, "")}, "a", 0, ""},
		{"failures say nothing", []error{errNodeDown, heldBy("a", 2, ""), nil, heldBy("a", 3, "")}, "a", 3, ""},
	} {
		answers := answersOf(false, tt.outcomes...)
		answers.quorum = 3
		report := answers.contention()
		if report.Name != "job" || report.Jitter != time.Second || report.Owner != tt.owner || report.Note != "note of "+tt.owner {
			t.Errorf("%s: %+v, want %q", tt.name, report, tt.owner)
		}
		if report.Left != tt.left || report.RetryAfter != 2*tt.left || report.Channel.Name() != tt.channel {
			t.Errorf("%s: %v left, again after %v, channel %q; want %v, %v, %q", tt.name,
				report.Left, report.RetryAfter, report.Channel.Name(), tt.left, 2*tt.left, tt.channel)
		}
	}
}

func TestAgree(t *testing.T) {
	t.Parallel()
	type states = []locker.State
	by := func(owner, note string, left time.Duration) locker.State {
		return locker.State{Held: true, Owner: owner, Note: note, Holds: 1, Left: left}
	}
	reader := func(owner string) locker.State {
		s := by(owner, "", 5)
		s.Mode = locker.Shared
		return s
	}
	for _, tt := range []struct {
		name   string
		states states // three are needed
		want   locker.State
		most   int
		agreed bool
	}{
		{"free", make(states, 3), locker.State{}, 0, true},
		{"too few say that it is free", make(states, 2), locker.State{}, 0, false},
		{"a quorum", states{by("a", "n", 9), by("a", "n", 5), by("a", "n", 7)}, by("a", "n", 5), 3, true},
		{"more than a quorum", states{by("a", "n", 9), by("a", "n", 5), by("a", "n", 7), by("a", "n", 8)}, by("a", "n", 7), 4, true},
		{"a minority", states{by("a", "", 5), by("a", "", 5)}, locker.State{}, 2, false},
		{"no majority", states{by("a", "", 5), by("a", "", 5), by("b", "", 5), by("b", "", 5)}, locker.State{}, 2, false},
		{"a quorum and a minority", states{by("a", "", 5), by("b", "", 5), by("a", "", 5), by("b", "", 5), by("a", "", 5)}, by("a", "", 5), 3, true},
		{"the note of a minority", states{by("a", "n", 5), by("a", "", 5), by("a", "n", 5)}, by("a", "", 5), 3, true},
		{"readers that differ", states{reader("a"), reader("b"), reader("c")}, reader(""), 3, true},
		{"a reader that a quorum names", states{reader("a"), reader("a"), reader("a")}, reader("a"), 3, true},
		{"shared at one node still", states{by("a", "", 5), by("a", "", 5), reader("a")}, reader("a"), 3, true},
	} {
		got, most, agreed := agree(tt.states, 3)
		check.Equal(t, tt.name+": state", got, tt.want)
		check.Equal(t, tt.name+": nodes that name one holder", most, tt.most)
		check.Equal(t, tt.name+": agreed", agreed, tt.agreed)
	}
}

// anyDriver is a stand-in for the driver of a Channel; it gets no calls.
type anyDriver struct{ driver.Driver }
