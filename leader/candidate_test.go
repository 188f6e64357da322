package leader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// The pauses grow, and start again from the shortest after a term of a TTL or longer.
func TestPauses(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		var began, ended []time.Time
		err := leader.Run(t.Context(), wrap(lockertest.New()), leader.Config{
			Name: name, TTL: ttl,
			Policy: func() backoff.BackOff {
				return backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second), backoff.WithRandomizationFactor(0), backoff.WithMultiplier(2))
			},
			Lead: func(context.Context, int64) error {
				began = append(began, time.Now())
				defer func() { ended = append(ended, time.Now()) }()
				switch len(began) {
				case 4:
					time.Sleep(ttl) //nolint:forbidigo // fake time
				case 6:
					return nil
				}
				return errWork
			},
		})
		match(t, err)
		for i, want := range []int{1, 2, 4, 1, 2} {
			check.Equal(t, fmt.Sprint("pause ", i), began[i+1].Sub(ended[i]), time.Duration(want)*time.Second)
		}
	})
}

// The reason of a loss is the cause of Lead's ctx, and Run campaigns again.
func TestLeaseIsLost(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := lockertest.New()
		causes, ends := make(chan error, 2), make(chan error, 2)
		a := run(t, wrap(l), leader.Config{OnEnd: func(_ int64, err error) { ends <- err }, Lead: func(ctx context.Context, _ int64) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil
		}})
		term := a.leads()
		l.Forget(name)
		check.AtLeast(t, "next term", a.leads(), term+1)
		match(t, <-causes, locker.ErrLost)
		match(t, <-ends, locker.ErrLost)
		a.stop()
		match(t, a.result())
		match(t, <-causes, context.Canceled)
		match(t, <-ends)
	})
}

func TestRunIsStopped(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := lockertest.New()
		lead := func(context.Context, int64) error { t.Error("it leads"); return nil }
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		nobody := locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) {
			t.Error("it campaigns")
			return nil, errWork
		})
		match(t, leader.Run(ended, nobody, leader.Config{Name: name, Lead: lead}))

		// While it waits for another.
		held, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Hour})
		match(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		match(t, leader.Run(ctx, wrap(l), leader.Config{Name: name, Lead: lead}))
		match(t, leader.Run(t.Context(), l, leader.Config{ // without waiting
			Name: name, Lead: lead,
			Policy: twice,
		}), locker.ErrNotAcquired)
		match(t, held.Release(t.Context()))

		// While an acquire is answered.
		late, cancel := context.WithCancel(t.Context())
		match(t, leader.Run(late, locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			lock, err := l.Acquire(ctx, req)
			cancel()
			return lock, err
		}), leader.Config{Name: name, Lead: lead}))
		free(t, l)
	})
}

func TestSecondRun(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		a := run(t, wrap(lockertest.NewSemaphore(1)), leader.Config{})
		a.leads()
		match(t, a.Run(t.Context()), locker.ErrInvalid)
		a.stop()
		match(t, a.result())
		a.again()
		a.leads()
		a.stop()
		match(t, a.result())
	})
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	lead := func(context.Context, int64) error { return nil }
	l := lockertest.New()
	type test struct {
		l   locker.Locker
		cfg leader.Config
	}
	check.Each(t, map[string]test{
		"no Locker":             {nil, leader.Config{Name: name, Lead: lead}},
		"a semaphore":           {lockertest.NewSemaphore(2), leader.Config{Name: name, Lead: lead}},
		"no name":               {l, leader.Config{Lead: lead}},
		"no Lead":               {l, leader.Config{Name: name}},
		"a TTL below 0":         {l, leader.Config{Name: name, Lead: lead, TTL: -1}},
		"a TTL too long":        {l, leader.Config{Name: name, Lead: lead, TTL: locker.MaxTTL + 1}},
		"a note too long":       {l, leader.Config{Name: name, Lead: lead, Note: strings.Repeat("x", locker.MaxNameLen+1)}},
		"a StopTimeout below 0": {l, leader.Config{Name: name, Lead: lead, StopTimeout: -1}},
	}, func(t *testing.T, tc test) {
		err := leader.Run(t.Context(), tc.l, tc.cfg)
		match(t, err, locker.ErrInvalid)
		if _, ok := errors.AsType[*locker.InvalidError](err); !ok {
			t.Errorf("%T is no *InvalidError", err)
		}
	})
	match(t, leader.Run(nil, l, leader.Config{Name: name, Lead: lead}), locker.ErrInvalid) //nolint:staticcheck // a nil ctx is refused
	unfenced := locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { return nil, errors.ErrUnsupported })
	match(t, leader.Run(t.Context(), unfenced, leader.Config{Name: name, Lead: lead}), errors.ErrUnsupported)
}

// Observe yields changes, at the interval and when the lease ends, and ends with its loop.
func TestObserve(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := lockertest.New()
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, TTL: 2500 * time.Millisecond, Note: "a", Fenced: true}))
		start, seen := time.Now(), []leader.Leader{}
		for now, err := range leader.Observe(t.Context(), l, name, time.Second) {
			match(t, err)
			if seen = append(seen, now); now == (leader.Leader{}) {
				break
			}
			match(t, lock.Renew(t.Context(), 0))
		}
		if took := time.Since(start); took < 2500*time.Millisecond || took > 2600*time.Millisecond || len(seen) != 2 || seen[0] != (leader.Leader{Note: "a", Term: 1}) {
			t.Errorf("saw %+v, the end of the lease after %v", seen, took)
		}
		for _, err := range leader.Observe(t.Context(), locker.Func(l.Acquire), name, 0) {
			match(t, err, errors.ErrUnsupported)
		}
	})
}
