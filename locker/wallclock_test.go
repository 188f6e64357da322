package locker_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// skewed is a time whose clocks disagree: it is at wall by the wall clock and at mono by the
// monotonic one. So is a Deadline after the machine was suspended, when the monotonic clock stood
// still, or after somebody set the wall clock.
func skewed(wall, mono time.Time) time.Time {
	type fields struct { // of time.Time, when it has both clocks
		wall uint64
		mono int64
		loc  *time.Location
	}
	(*fields)(unsafe.Pointer(&wall)).mono = (*fields)(unsafe.Pointer(&mono)).mono
	return wall
}

func in(d time.Duration) time.Time { return time.Now().Add(d) }

func TestSkewed(t *testing.T) {
	t.Parallel()
	at := skewed(in(time.Minute), in(time.Hour))
	if mono, wall := time.Until(at), time.Until(at.Round(0)); mono < 59*time.Minute || wall > time.Minute {
		t.Fatalf("%v by the monotonic clock and %v by the wall clock, want an hour and a minute", mono, wall)
	}
}

func TestDeadlineByBothClocks(t *testing.T) {
	t.Parallel()
	const sec, hour = time.Second, time.Hour
	type test struct {
		wall, mono time.Duration
		ended      bool
	}
	check.Each(t, map[string]test{
		"both ahead":                  {hour, hour, false},
		"suspended past the lease":    {-sec, hour, true},
		"the wall clock was set back": {hour, -sec, true},
		"both passed":                 {-sec, -sec, true},
	}, func(t *testing.T, tt test) {
		l := &fakeLease{}
		lock := locker.NewLock(t.Context(), lease.Grant{
			Name: "a", Token: secret, TTL: hour, Deadline: skewed(in(tt.wall), in(tt.mono)),
		}, l)
		check.Equal(t, "Done closed", check.Closed(lock.Done()), tt.ended)
		if !tt.ended {
			check.Error(t, "Renew", lock.Renew(t.Context(), 0))
			return
		}
		check.Error(t, "Err", lock.Err(), locker.ErrLost)
		check.Error(t, "Renew", lock.Renew(t.Context(), 0), locker.ErrLost)
		if len(l.asked()) != 0 {
			t.Errorf("asked %v after the end", l.asked())
		}
	})
}

// The timer goes by the clock that says less, too.
func TestDoneByBothClocks(t *testing.T) {
	t.Parallel()
	for name, deadline := range map[string]time.Time{
		"wall clock sooner":      skewed(in(20*time.Millisecond), in(time.Hour)),
		"monotonic clock sooner": skewed(in(time.Hour), in(20*time.Millisecond)),
		"no monotonic clock":     in(20 * time.Millisecond).Round(0),
	} {
		lock := locker.NewLock(t.Context(), lease.Grant{Name: "a", Token: secret, TTL: time.Hour, Deadline: deadline}, &fakeLease{})
		select {
		case <-lock.Done():
		case <-time.After(10 * time.Second):
			t.Errorf("%s: Done stays open", name)
		}
		check.Error(t, name, lock.Err(), locker.ErrLost)
	}
}
