package locker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// looking counts the looks, and fails those for which fail returns an error.
type looking struct {
	*lockertest.Locker
	looks int
	fail  func(look int) error
}

func (l *looking) Inspect(ctx context.Context, name string) (locker.State, error) {
	l.looks++
	if err := l.fail(l.looks); err != nil {
		return locker.State{}, err
	}
	return l.Locker.Inspect(ctx, name)
}

// Watch looks at the interval, and when a lease ends. It outlives errors that pass.
func TestWatch(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := &looking{Locker: lockertest.New(), fail: func(look int) error {
			return map[int]error{6: io.EOF, 7: io.EOF, 10: locker.ErrClosed}[look]
		}}
		locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a", Note: "why", TTL: 2500 * time.Millisecond}))
		start := time.Now()
		var seen []string
		for state, err := range locker.Watch(t.Context(), wrapping{l}, "a", 0) {
			seen = append(seen, fmt.Sprintf("%v %t %q %v", time.Since(start), state.Held, state.Note, errors.Unwrap(err)))
		}
		// After the lease a look a second: two fail, and the third one is the first to succeed.
		want := []string{`0s true "why" <nil>`, `2.501s false "" <nil>`, `4.501s false "" EOF`, `6.501s false "" <nil>`, `8.501s false "" driver is closed`}
		check.EqualSlices(t, "yields", seen, want)
	})
}

// It ends with its ctx, also while nothing changes, and yields nothing then; and with its loop.
func TestWatchEnds(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		yields := 0
		for _, err := range locker.Watch(ctx, lockertest.New(), "a", time.Minute) {
			check.Error(t, "Watch", err)
			yields++
		}
		for _, err := range locker.Watch(t.Context(), lockertest.New(), "a", 0) {
			check.Error(t, "Watch", err)
			yields++
			break
		}
		if yields != 2 {
			t.Errorf("they yield %d times", yields)
		}
	})
}
