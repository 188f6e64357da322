package retry

import (
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// watchClose makes Close wake all queues.
func (r *retrier) watchClose() {
	r.queues.watch.Do(func() { lease.WatchClose(r.inner, r.queues, (*queues).wakeToClose) })
}

// wakeToClose wakes the leaders; their attempts fail. From then on each new leader tries at once.
func (qs *queues) wakeToClose() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.closing = true
	for _, q := range qs.byName {
		q.wakeLeaders(locktrace.ByTurn)
	}
}
