package locker_test

import (
	"errors"
	"io"
	"testing"

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
