package retry

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/locker"
)

// AcquireBatch implements locker.BatchAcquirer. It asks the Locker inside, unless a request of this
// process is in a queue for one of the names: the batch would pass it.
func (r *retrier) AcquireBatch(ctx context.Context, reqs []locker.Request) (locker.Batch, error) {
	acquirer, ok := r.inner.(locker.BatchAcquirer)
	if !ok || r.queues.hasWaiters(reqs) {
		return nil, errors.ErrUnsupported
	}
	return acquirer.AcquireBatch(ctx, reqs)
}

// hasWaiters reports whether a request of this process is in the queue of one of the names of reqs.
func (qs *queues) hasWaiters(reqs []locker.Request) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, req := range reqs {
		if qs.byName[req.Name] != nil {
			return true
		}
	}
	return false
}
