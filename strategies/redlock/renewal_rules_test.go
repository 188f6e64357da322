package redlock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

func TestRenewedSince(t *testing.T) {
	t.Parallel()
	renewed := func(d, ends time.Duration) nodeView {
		n := until(ends)
		n.renewed = at(d)
		return n
	}
	v := viewOf(renewed(0, 9), renewed(1, 9), renewed(-1, 9), renewed(1, -1), nodeView{renewed: at(1)}, until(9))
	if n := v.renewedSince(at(0)); n != 2 {
		t.Errorf("%d nodes, want 2: the others expired, or granted an earlier renewal", n)
	}
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
		if got := viewOf(tt.nodes...).noneTookOver(at(0)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
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
	} {
		if got := leaseToAsk(tt.ttl, tt.deadline, viewed); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
