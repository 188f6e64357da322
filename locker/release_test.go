package locker_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func TestRelease(t *testing.T) {
	t.Parallel()
	lost := func(lock *locker.Lock) { lock.Hold().MarkLost(io.ErrClosedPipe) }
	expired := func(*locker.Lock) { check.Advance(time.Minute) }
	type test struct {
		before  func(*locker.Lock)
		answer  error
		want    []error
		wantNot []error
		ended   error
	}
	check.EachInFakeTime(t, map[string]test{
		"held, done":          {nil, nil, nil, nil, locker.ErrReleased},
		"held, gone":          {nil, locker.ErrNotHeld, []error{locker.ErrLost}, []error{locker.ErrReleased}, locker.ErrReleased},
		"held, lost, and why": {nil, errors.Join(locker.ErrLost, io.EOF), []error{locker.ErrLost, io.EOF}, nil, locker.ErrReleased},
		"held, unknown":       {nil, locker.ErrUnknownOutcome, []error{locker.ErrUnknownOutcome}, []error{locker.ErrLost, locker.ErrNotHeld}, locker.ErrReleased},
		"held, failed":        {nil, io.EOF, []error{io.EOF}, []error{locker.ErrLost}, locker.ErrReleased},
		"lost, done":          {lost, nil, []error{locker.ErrLost, io.ErrClosedPipe}, nil, locker.ErrLost},
		"lost, gone":          {lost, locker.ErrNotHeld, []error{locker.ErrLost, io.ErrClosedPipe}, nil, locker.ErrLost},
		"lost, unknown":       {lost, locker.ErrUnknownOutcome, []error{locker.ErrLost, locker.ErrUnknownOutcome}, nil, locker.ErrLost},
		"expired, done":       {expired, nil, []error{locker.ErrLost}, nil, locker.ErrLost},
		"expired, gone":       {expired, locker.ErrNotHeld, []error{locker.ErrLost}, nil, locker.ErrLost},
		"expired, failed":     {expired, io.EOF, []error{locker.ErrLost, io.EOF}, nil, locker.ErrLost},
	}, func(t *testing.T, tt test) {
		l := refusing(tt.answer)
		lock := hold(t, l, time.Minute)
		if tt.before != nil {
			tt.before(lock)
		}
		err := lock.Release(t.Context())
		check.Error(t, "Release", err, tt.want...)
		wantNotError(t, "Release", err, tt.wantNot...)
		if err != nil {
			wantOp(t, err, "release")
		}
		again := lock.Release(t.Context())
		check.Error(t, "second Release", again, locker.ErrReleased)
		wantOp(t, again, "release")
		check.EqualSlices(t, "asked", l.asked(), []lease.Op{{Kind: lease.OpRelease}})
		check.Error(t, "Err", lock.Err(), tt.ended)
		if !check.Closed(lock.Done()) {
			t.Error("Done is open")
		}
	})
}

// The lock has ended when the release is asked for, not when it is answered; and no ctx stops it.
func TestReleaseEndsAtOnce(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		free := make(chan struct{})
		l := silent(free, lease.Term{}, nil)
		lock := hold(t, l, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got := make(chan error, 1)
		go func() { got <- lock.Release(ctx) }()
		synctest.Wait()
		if len(l.asked()) != 1 {
			t.Error("a cancelled ctx stopped the release")
		}
		if !check.Closed(lock.Done()) || !errors.Is(lock.Err(), locker.ErrReleased) {
			t.Errorf("Err %v while the release is under way, want ErrReleased", lock.Err())
		}
		check.Error(t, "second Release", lock.Release(t.Context()), locker.ErrReleased)
		close(free)
		check.Error(t, "Release", <-got)
	})
}
