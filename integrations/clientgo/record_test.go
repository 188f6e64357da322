package clientgo

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

func TestRecordOf(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tt := range map[string]struct {
		state   locker.State
		holder  string
		seconds int
	}{
		"another candidate":                 {locker.State{Held: true, Owner: "b", Left: 2500 * time.Millisecond}, "b", 3},
		"an earlier hold of this candidate": {locker.State{Held: true, Owner: "a", Left: time.Second}, "", 1},
		"another library, for ever":         {locker.State{Held: true}, unknownHolder, 1},
		"a last millisecond":                {locker.State{Held: true, Owner: "b", Left: time.Millisecond}, "b", 1},
	} {
		got := recordOf(tt.state, "a", now)
		if got.HolderIdentity != tt.holder || got.LeaseDurationSeconds != tt.seconds || !got.RenewTime.Time.Equal(now) {
			t.Errorf("%s: the record is %+v", name, got)
		}
	}
}

// A LeaderElector takes an unchanging record for a dead leader's.
func TestRawChanges(t *testing.T) {
	t.Parallel()
	now, state := time.Now(), locker.State{Held: true, Owner: "b"}
	one, same, next := recordOf(state, "a", now), recordOf(state, "a", now), recordOf(state, "a", now.Add(1))
	if string(raw(one)) != string(raw(same)) || string(raw(one)) == string(raw(next)) {
		t.Errorf("the records are %s, %s and %s", raw(one), raw(same), raw(next))
	}
}
