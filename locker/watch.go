package locker

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	watchInterval = time.Second           // the default of Watch
	watchPause    = 10 * time.Millisecond // between two polls at least
)

// Watch yields the [State] of name: now, and after each change, until ctx ends or the loop is left.
// It acquires nothing and starts no goroutine. It polls with [Inspect], every interval (default: 1
// s) and when the lease ends, but waits at least 10 ms between two polls. A release does not wake
// it: each would cost a message. A hold that begins and ends between two polls is not seen. The
// next hold of the same owner is seen only if its Fence or its Note differs.
//
// A change is a difference in more than Left: each renewal changes Left. While there are several
// holds, another Owner or Note is no change either: they are of the hold with the latest end. The
// States may be out of date: they are for people and for finding a holder, not for deciding who may
// write.
//
// If a poll fails, Watch yields the error once, with the last known State. It polls on, and yields
// the State as soon as a poll succeeds. It ends after a permanent error: ErrInvalid,
// errors.ErrUnsupported (l has no [Inspector]), ErrClosed, a missing permission. Each error is in
// an [OpError].
func Watch(ctx context.Context, l Locker, name string, interval time.Duration) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		if err := checkWatch(ctx, interval); err != nil {
			yield(State{}, opError("watch", name, err))
			return
		}
		if interval == 0 {
			interval = watchInterval
		}
		var v view
		for ctx.Err() == nil {
			state, err := Inspect(ctx, l, name)
			if ctx.Err() != nil {
				return
			}
			if v.update(state, err) && !yield(v.state, err) {
				return
			}
			if err != nil && !driver.Transient(err) {
				return
			}
			pause(ctx, untilPoll(state, interval))
		}
	}
}

func checkWatch(ctx context.Context, interval time.Duration) error {
	switch {
	case ctx == nil:
		return argument.NilContext("Watch ctx")
	case interval < 0:
		return argument.Invalid("Watch interval", interval.String(), "a positive duration, or 0 for 1s")
	}
	return nil
}

// untilPoll returns the time until the next poll after one with the result state.
func untilPoll(state State, interval time.Duration) time.Duration {
	if state.Held && state.Left > 0 {
		interval = min(interval, state.Left+time.Millisecond)
	}
	return max(interval, watchPause)
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// view is a watcher's knowledge. The zero view knows nothing.
type view struct {
	state  State
	known  bool // the last poll returned state
	failed bool // the last poll failed
}

// update records the result of a poll, and reports whether to yield.
func (v *view) update(state State, err error) bool {
	if err != nil {
		first := !v.failed || !driver.Transient(err)
		v.failed, v.known = true, false
		return first
	}
	before := v.state
	before.Left = state.Left
	if state.Holds > 1 {
		before.Owner, before.Note = state.Owner, state.Note
	}
	changed := !v.known || state != before
	*v = view{state: state, known: true}
	return changed
}
