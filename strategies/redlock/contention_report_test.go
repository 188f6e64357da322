package redlock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

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
		if got := kthShortest(all, k); got != want {
			t.Errorf("number %d is %v, want %v", k, got, want)
		}
	}
}

// anyDriver stands for the driver of a channel that is only named.
type anyDriver struct{ driver.Driver }
