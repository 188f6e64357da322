package leader

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestAfterTerm(t *testing.T) {
	t.Parallel()
	var (
		errWork    = errors.New("work failed")
		errRelease = errors.New("release failed")
		errLost    = &locker.LostError{Name: "a"}
	)
	type test struct {
		outcome
		again bool
		want  []error
	}
	check.Each(t, map[string]test{
		"the work is done":                        {outcome{}, false, nil},
		"done, and the release failed":            {outcome{release: errRelease}, false, []error{errRelease}},
		"the work failed":                         {outcome{lead: errWork}, true, []error{errWork}},
		"the work and the release failed":         {outcome{lead: errWork, release: errRelease}, true, []error{errWork, errRelease}},
		"failed for good":                         {outcome{lead: backoff.Permanent(errWork)}, false, []error{errWork}},
		"failed for good, wrapped":                {outcome{lead: fmt.Errorf("x: %w", backoff.Permanent(errWork))}, false, []error{errWork}},
		"failed for good after the loss":          {outcome{lead: backoff.Permanent(errWork), lost: errLost}, false, []error{errWork}},
		"stopped":                                 {outcome{stopped: true}, false, nil},
		"stopped, and it says so":                 {outcome{stopped: true, ctxErr: true, lead: fmt.Errorf("x: %w", context.Canceled)}, false, nil},
		"stopped, and the work failed":            {outcome{stopped: true, lead: errWork}, false, []error{errWork}},
		"stopped, and the lease ended meanwhile":  {outcome{stopped: true, lost: errLost, release: errLost}, false, []error{locker.ErrLost}},
		"lost":                                    {outcome{lost: errLost}, true, nil},
		"lost, and it says so":                    {outcome{lost: errLost, ctxErr: true, lead: errLost, release: errLost}, true, []error{locker.ErrLost}},
		"lost, and the work failed":               {outcome{lost: errLost, lead: errWork}, true, []error{errWork}},
		"it says cancelled, but its ctx goes on":  {outcome{lead: context.Canceled}, true, []error{context.Canceled}},
		"released by somebody else":               {outcome{lost: locker.ErrReleased}, false, nil},
		"released by somebody else, and it fails": {outcome{lost: locker.ErrReleased, lead: errWork}, true, []error{errWork}},
	}, func(t *testing.T, tc test) {
		got := afterTerm(tc.outcome)
		check.Equal(t, "again", got.again, tc.again)
		check.Error(t, "error", got.err, tc.want...)
	})
}

func TestIsContextErr(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for what, tc := range map[string]struct {
		ctx  context.Context
		err  error
		want bool
	}{
		"nil":                     {ended, nil, false},
		"its error":               {ended, fmt.Errorf("x: %w", context.Canceled), true},
		"its cause":               {ended, fmt.Errorf("x: %w", cause), true},
		"another error":           {ended, context.DeadlineExceeded, false},
		"of another ctx":          {t.Context(), context.Canceled, false},
		"nil of one that goes on": {t.Context(), nil, false},
	} {
		check.Equal(t, what, isContextErr(tc.ctx, tc.err), tc.want)
	}
}

func TestAfterAcquire(t *testing.T) {
	t.Parallel()
	type test struct {
		stopped bool
		err     error
		again   bool
		nil     bool
	}
	check.Each(t, map[string]test{
		"stopped":            {stopped: true, err: context.Canceled, nil: true},
		"held by another":    {err: &locker.ContentionError{}, again: true},
		"an outage":          {err: errors.New("connection refused"), again: true},
		"of unknown outcome": {err: locker.ErrUnknownOutcome, again: true},
		"invalid":            {err: argument.Invalid("a", "b", "c")},
		"closed":             {err: locker.ErrClosed},
		"no tokens":          {err: errors.ErrUnsupported},
		"no permission":      {err: &driver.ServerError{Text: "NOPERM this user"}},
		"another type":       {err: &driver.ServerError{Text: "WRONGTYPE Operation"}},
	}, func(t *testing.T, tc test) {
		got := afterAcquire(tc.stopped, tc.err)
		if got.again != tc.again || (got.err == nil) != tc.nil {
			t.Errorf("got %+v", got)
		}
	})
}

func TestView(t *testing.T) {
	t.Parallel()
	failure, final := errors.New("connection refused"), locker.ErrClosed
	held := func(owner, note string, fence int64) locker.State {
		return locker.State{Held: true, Owner: owner, Note: note, Fence: fence}
	}
	type look struct {
		state locker.State
		err   error
		yield bool
		want  Leader
	}
	check.Each(t, map[string][]look{
		"nobody, then a, then b": {
			{yield: true}, {}, {state: held("1", "a", 5), yield: true, want: Leader{"a", 5}},
			{state: held("1", "a", 5), want: Leader{"a", 5}}, {state: held("2", "b", 6), yield: true, want: Leader{"b", 6}},
			{yield: true},
		},
		"the same again in another term": {
			{state: held("1", "a", 5), yield: true, want: Leader{"a", 5}}, {state: held("2", "a", 6), yield: true, want: Leader{"a", 6}},
		},
		"no owner is known": {
			{state: held("", "a", 5), yield: true, want: Leader{"a", 5}}, {state: held("", "a", 6), yield: true, want: Leader{"a", 6}},
		},
		"a node of a quorum joins later": {
			{state: held("1", "a", 5), yield: true, want: Leader{"a", 5}}, {state: held("1", "a", 9), want: Leader{"a", 5}},
		},
		"an outage": {
			{state: held("1", "a", 5), yield: true, want: Leader{"a", 5}},
			{err: failure, yield: true, want: Leader{"a", 5}},
			{state: held("1", "a", 5), yield: true, want: Leader{"a", 5}}, {err: failure, yield: true, want: Leader{"a", 5}},
		},
		"an outage first":          {{err: failure, yield: true}, {yield: true}},
		"an outage, then the last": {{err: failure, yield: true}, {err: final, yield: true}},
	}, func(t *testing.T, looks []look) {
		var v view
		for i, l := range looks {
			if got := v.update(l.state, l.err); got != l.yield || v.leader != l.want {
				t.Errorf("look %d: yields %t, %+v; want %t, %+v", i, got, v.leader, l.yield, l.want)
			}
		}
	})
}

// A term ends by the clock, even if nothing has noticed yet: a process may be frozen, and run other
// goroutines first when it wakes up.
func TestTermEndsByTheClock(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		lock := locker.Must(lockertest.New().Acquire(t.Context(), locker.Request{Name: "a", TTL: time.Minute, Fenced: true}))
		unnoticed := &term{lock: lock, ctx: t.Context()}
		check.Equal(t, "leads at the beginning", unnoticed.leads(), true)
		time.Sleep(time.Until(lock.Deadline())) //nolint:forbidigo // fake time
		check.Equal(t, "leads at its Deadline", unnoticed.leads(), false)
	})
}

// A Lead that returns at the instant of the timeout is waited for.
func TestLeadReturnsAtTheTimeout(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		last := &term{ctx: ended, returned: make(chan struct{})}
		last.ended.Store(byLead)
		start := time.Now()
		time.AfterFunc(time.Minute, func() { close(last.returned) })
		check.Equal(t, "Lead has returned", last.wait(time.Second), true)
		check.Took(t, "wait", start, time.Minute)
		before := &term{ctx: t.Context(), returned: last.returned}
		check.Equal(t, "Lead returned before", before.wait(time.Second), true)
	})
}
