package machines

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// handmade is a quorum as it might be written by hand. It is the lease of its locks, too.
type handmade struct {
	nodes     []locker.Locker
	need      int
	givesBack bool // what it had when the quorum was missed

	req   locker.Request
	locks []*locker.Lock // nil: not held there
}

func quorumOf(need int, givesBack bool) func([]locker.Locker) (locker.Locker, error) {
	return func(over []locker.Locker) (locker.Locker, error) {
		return &handmade{nodes: over, need: need, givesBack: givesBack}, nil
	}
}

// each asks all nodes at once for what a quorum must do.
func (q *handmade) each(ctx context.Context, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithTimeout(ctx, q.req.TTL/10)
	defer cancel()
	errs := make([]error, len(q.nodes))
	var wg sync.WaitGroup
	for i := range q.nodes {
		wg.Go(func() { errs[i] = f(ctx, i) })
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		}
	}
	if done < q.need {
		return errors.Join(errs...)
	}
	return nil
}

func (q *handmade) take(ctx context.Context, i int) (err error) {
	q.locks[i], err = q.nodes[i].Acquire(ctx, q.req)
	return err
}

// Acquire implements locker.Locker.
func (q *handmade) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	start := time.Now()
	h := &handmade{nodes: q.nodes, need: q.need, req: req, locks: make([]*locker.Lock, len(q.nodes))}
	if err := h.each(ctx, h.take); err != nil {
		if q.givesBack {
			_, _ = h.Do(ctx, lease.Op{Kind: lease.OpRelease})
		}
		return nil, err
	}
	var fence int64
	for _, l := range h.locks {
		fence = max(fence, l.Fence())
	}
	return locker.NewLock(ctx, lease.Grant{
		Name: req.Name, Owner: req.Owner, Token: lease.NewToken(), TTL: req.TTL, Deadline: start.Add(left(req.TTL)), Fence: fence,
	}, h), nil
}

// Do implements lease.Lease.
func (q *handmade) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	end := time.Now().Add(left(op.TTL))
	switch op.Kind {
	case lease.OpRenew:
		q.req.TTL = op.TTL
		return lease.Term{Deadline: end}, q.each(ctx, func(ctx context.Context, i int) error {
			err := q.locks[i].Renew(ctx, op.TTL)
			if errors.Is(err, locker.ErrNotHeld) {
				err = q.take(ctx, i)
			}
			return err
		})
	case lease.OpRelease:
		return lease.Term{}, q.each(ctx, func(ctx context.Context, i int) error { return q.locks[i].Release(ctx) })
	default:
		return lease.Term{}, errors.ErrUnsupported
	}
}
