package leader_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/leader"
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
	if l.looks++; l.fail != nil {
		if err := l.fail(l.looks); err != nil {
			return locker.State{}, err
		}
	}
	return l.Locker.Inspect(ctx, name)
}

// It looks at the interval, and when the lease ends; a loop that is left, or a ctx that ends, ends
// it.
func TestObserveInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &looking{Locker: lockertest.New()}
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: 2500 * time.Millisecond, Note: "a", Fenced: true})
		match(t, err)
		start := time.Now()
		for now, err := range leader.Observe(t.Context(), l, name, time.Second) {
			match(t, err)
			if now == (leader.Leader{}) {
				break
			}
			if now != (leader.Leader{Note: "a", Term: 1}) {
				t.Errorf("saw %+v", now)
			}
		}
		if took := time.Since(start); took < 2500*time.Millisecond || took > 2600*time.Millisecond || l.looks != 4 {
			t.Errorf("the end of the lease was seen after %v, with %d looks", took, l.looks)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		l.looks = 0
		for now, err := range leader.Observe(ctx, l, name, 0) {
			match(t, err)
			if now != (leader.Leader{}) {
				t.Errorf("saw %+v", now)
			}
		}
		if l.looks < 10 || l.looks > 11 {
			t.Errorf("%d looks in 10 s, want one each second", l.looks)
		}
	})
}

func TestObserveErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outage := errors.New("connection refused")
		l := &looking{Locker: lockertest.New(), fail: func(look int) error {
			switch {
			case look >= 2 && look <= 5:
				return outage
			case look == 8:
				return locker.ErrClosed
			}
			return nil
		}}
		var errs []error
		for _, err := range leader.Observe(t.Context(), l, name, 0) {
			errs = append(errs, err)
		}
		if len(errs) != 4 || errs[0] != nil || errs[2] != nil {
			t.Fatalf("it yields %v", errs)
		}
		match(t, errs[1], outage)
		match(t, errs[3], locker.ErrClosed)
		if l.looks != 8 {
			t.Errorf("%d looks", l.looks)
		}
	})
}

func TestObserveInvalid(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	for what, tc := range map[string]struct {
		ctx      context.Context
		l        locker.Locker
		name     string
		interval time.Duration
		want     error
	}{
		"no ctx":              {nil, l, name, 0, locker.ErrInvalid},
		"no Locker":           {t.Context(), nil, name, 0, locker.ErrInvalid},
		"no name":             {t.Context(), l, "", 0, locker.ErrInvalid},
		"an interval below 0": {t.Context(), l, name, -1, locker.ErrInvalid},
		"no Inspector":        {t.Context(), locker.Func(l.Acquire), name, 0, errors.ErrUnsupported},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			yields := 0
			for _, err := range leader.Observe(tc.ctx, tc.l, tc.name, tc.interval) {
				yields++
				match(t, err, tc.want)
			}
			if yields != 1 {
				t.Errorf("it yields %d times", yields)
			}
		})
	}
}
