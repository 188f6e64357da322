package timers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// The census finds set timers until they are stopped. The test makes leaks: it forgets a user's
// duties.
func TestCensusFindsWhatIsLeft(t *testing.T) {
	acquire := func(t *testing.T, l locker.Locker) (release func()) {
		t.Helper()
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job", TTL: time.Hour}))
		lock.Done()
		return func() {
			check.OK(t, lock.Release(context.Background()))
		}
	}
	tests := []struct {
		name string
		leak func(t *testing.T) (end func())
		want []string // a part of each timer's origin
	}{
		{"a lock that is not released", func(t *testing.T) func() {
			return acquire(t, lockertest.New())
		}, []string{"locker.(*lockState).watch"}},
		{"one that is watched", func(t *testing.T) func() {
			return acquire(t, locker.Must(watchdog.New(watchdog.Config{}))(lockertest.New()))
		}, []string{"locker.(*lockState).watch", "watchdog.(*scheduler).arm"}},
		{"a bound", func(*testing.T) func() {
			b := bounded.New(context.Background(), time.Hour)
			b.Done()
			return b.Stop
		}, []string{"bounded.(*Context).Done"}},
		{"a context", func(t *testing.T) func() {
			b := bounded.New(t.Context(), time.Hour)
			b.Done()
			return b.Stop
		}, []string{"bounded.(*Context).Done"}},
		{"what is not ours", func(*testing.T) func() {
			//realtime:ok the timer is what is looked for
			timer := time.AfterFunc(time.Hour, func() {})
			return func() { timer.Stop() }
		}, nil},
	}
	for _, tt := range effort.Of(tests[1:2], tests[1:2], tests) {
		t.Run(tt.name, func(t *testing.T) {
			end := tt.leak(t)
			left := census(t)
			check.Equal(t, fmt.Sprintf("timers: %q", left), len(left), len(tt.want))
			for i, want := range tt.want[:min(len(tt.want), len(left))] {
				if !strings.HasPrefix(left[i], "1 ") || !strings.Contains(left[i], want) {
					t.Errorf("there is a timer of %s, want one of %s", left[i], want)
				}
			}
			end()
			check.EqualSlices(t, "left when all is ended", census(t), nil)
		})
	}
}
