package machines

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// oneOfThree is a quorum whose attempts each ask one node, another one than that before.
func oneOfThree(over []locker.Locker) (locker.Locker, error) {
	var attempts atomic.Int64
	return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		return over[int(attempts.Add(1))%len(over)].Acquire(ctx, req)
	}), nil
}

// givesNothingBack is a quorum whose attempts leave what they acquired before they failed.
func givesNothingBack(over []locker.Locker) (locker.Locker, error) {
	flawed := make([]locker.Locker, len(over))
	for i, node := range over {
		flawed[i] = locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			lock, err := node.Acquire(ctx, req)
			if err == nil {
				lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return withoutUndo{inner} })
			}
			return lock, err
		})
	}
	return redlock.New(flawed, redlock.Config{Quorum: needed})
}

type withoutUndo struct{ lease.Lease }

func (l withoutUndo) Unwrap() lease.Lease { return l.Lease }

func (l withoutUndo) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	if op.Kind == lease.OpUndo {
		return lease.Term{}, nil
	}
	return l.Lease.Do(ctx, op)
}
