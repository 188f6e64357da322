package workload

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/locker"
)

// Several returns a Locker that acquires each lock of l together with another, by
// locker.AcquireAll, and releases the other one at once. Nobody else asks for the other name: it
// contains prefix and a number.
func Several(l locker.Locker, prefix string) locker.Locker {
	return &several{inner: l, prefix: prefix}
}

type several struct {
	inner  locker.Locker
	prefix string
	count  atomic.Int64
}

// Unwrap returns l.
func (s *several) Unwrap() locker.Locker { return s.inner }

// Acquire implements locker.Locker. A resume is not combined with another acquire.
func (s *several) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if !req.Resume.IsZero() {
		return s.inner.Acquire(ctx, req)
	}
	other, n := req, s.count.Add(1)
	// By turns the other name sorts before and behind the first one.
	other.Name, other.Fenced = fmt.Sprintf("%c-beside-%s-%d", "az"[n%2], s.prefix, n), false
	locks, err := locker.AcquireAll(ctx, s.inner, []locker.Request{req, other})
	if err != nil {
		return nil, err
	}
	all := locks.All()
	_ = all[1].Release(ctx) // the check at the end finds the keys of a failed release
	return all[0], nil
}
