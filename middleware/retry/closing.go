package retry

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// onClose calls f once the drivers of the wrapped Locker are being closed, if it knows that.
func (r *retrier) onClose(f func()) (stop func() bool) {
	if closing, ok := locker.As[lease.Closing](r.inner); ok {
		return closing.OnClose(f)
	}
	return func() bool { return true }
}

// watchClose makes Close wake w's queue, for as long as that has a waiter.
func (w *waiter) watchClose(r *retrier) {
	q := w.queue
	q.all.mu.Lock()
	watched := q.watched
	q.watched = true
	q.all.mu.Unlock()
	if watched {
		return
	}
	stop := r.onClose(q.wakeToClose)
	q.all.mu.Lock()
	over := q.size == 0
	if !over {
		q.unwatch = stop
	}
	q.all.mu.Unlock()
	if over {
		stop()
	}
}

// wakeToClose wakes the leaders, whose attempts fail. From then on each new leader tries at once.
func (q *queue) wakeToClose() {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.closing, q.notBefore = true, time.Time{}
	q.wakeLeaders(locktrace.ByTurn)
}
