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

// wrapping is a Locker that wraps another one.
type wrapping struct{ locker.Locker }

func (w wrapping) Unwrap() locker.Locker { return w.Locker }

// cycle is a Locker whose Unwrap leads back to it.
type cycle struct {
	locker.Locker
	next *cycle
}

func (c *cycle) Unwrap() locker.Locker { return c.next }

func TestInspect(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a", Owner: "me"}))
	self, two := new(cycle), &cycle{next: new(cycle)}
	self.next, two.next.next = self, two
	type test struct {
		l   locker.Locker
		err error // nil: held by me
	}
	check.Each(t, map[string]test{
		"a strategy":                      {l, nil},
		"behind middleware":               {wrapping{wrapping{l}}, nil},
		"a failing strategy":              {wrapping{&looking{Locker: l, fail: func(int) error { return io.EOF }}}, io.EOF},
		"behind a Func":                   {funcOf(l), errors.ErrUnsupported},
		"behind a wrapper of nothing":     {wrapping{}, errors.ErrUnsupported},
		"behind a wrapper of itself":      {self, errors.ErrUnsupported},
		"behind two that wrap each other": {two, errors.ErrUnsupported},
	}, func(t *testing.T, tt test) {
		state, err := locker.Inspect(t.Context(), tt.l, "a")
		if tt.err == nil {
			if err != nil || !state.Held || state.Owner != "me" {
				t.Errorf("%+v, %v", state, err)
			}
			return
		}
		check.Error(t, "Inspect", err, tt.err)
		wantName(t, err, "inspect", "a")
	})
}

// looking counts the Inspects, and returns the errors of fail.
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

// Watch inspects at each interval, and at the end of a lease. It outlives transient errors.
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
		// After the lease it inspects each second: two fail, and the third is the first to succeed.
		want := []string{`0s true "why" <nil>`, `2.501s false "" <nil>`, `4.501s false "" EOF`, `6.501s false "" <nil>`, `8.501s false "" driver is closed`}
		check.EqualSlices(t, "yields", seen, want)
	})
}

// Watch ends with its ctx, even while nothing changes, and then yields nothing; and with its loop.
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
