package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// cooled is the strategy under test if it keeps names taken after a release: whatever ends a hold
// returns once the name is free.
type cooled struct {
	locker.Locker
	coolDown time.Duration
}

// Unwrap gives lease.Find access to the strategy.
func (c cooled) Unwrap() locker.Locker { return c.Locker }

// Acquire implements locker.Locker.
func (c cooled) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := c.Locker.Acquire(ctx, req)
	if err == nil && lock != nil {
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return cooledLease{inner, c} })
	}
	return lock, err
}

// handleReleaser is a strategy for locker.Handle.Release.
type handleReleaser interface {
	ReleaseHandle(ctx context.Context, h locker.Handle) error
}

// breaker is a strategy for locker.Break.
type breaker interface {
	FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error)
}

// ReleaseHandle implements handleReleaser, as the strategy may.
func (c cooled) ReleaseHandle(ctx context.Context, h locker.Handle) error {
	inner, ok := lease.Find[handleReleaser](c.Locker)
	if !ok {
		return errors.ErrUnsupported
	}
	return c.cool(inner.ReleaseHandle(ctx, h))
}

// FindHolds implements breaker, as the strategy may.
func (c cooled) FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error) {
	inner, ok := lease.Find[breaker](c.Locker)
	if !ok {
		return locker.State{}, nil, errors.ErrUnsupported
	}
	state, end, err := inner.FindHolds(ctx, name)
	if end == nil {
		return state, nil, err
	}
	return state, func(ctx context.Context) error {
		return c.cool(end(ctx))
	}, err
}

// cool waits until the name is free, after a release without an error.
func (c cooled) cool(err error) error {
	if err != nil {
		return err
	}
	timer := time.NewTimer(c.coolDown)
	defer timer.Stop()
	<-timer.C
	return nil
}

// cooledLease is the Lease of a cooled strategy.
type cooledLease struct {
	lease.Lease
	of cooled
}

// Unwrap leaves renewals alone.
func (l cooledLease) Unwrap() lease.Lease { return l.Lease }

// Do implements lease.Lease.
func (l cooledLease) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	result, err := l.Lease.Do(ctx, op)
	if op.Kind == lease.OpRelease || op.Kind == lease.OpUndo {
		err = l.of.cool(err)
	}
	return result, err
}
