package retry

import (
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

// watchClose makes Close wake all queues, unless it does already. The watch ends with the last
// queue.
func (r *retrier) watchClose() {
	qs := r.queues
	qs.mu.Lock()
	watched := qs.watched
	qs.watched = true
	qs.mu.Unlock()
	if watched {
		return
	}
	stop := r.onClose(qs.wakeToClose)
	qs.mu.Lock()
	over := len(qs.byName) == 0
	if over {
		qs.watched = false
	} else {
		qs.unwatch = stop
	}
	qs.mu.Unlock()
	if over {
		stop()
	}
}

// endWatch records that the watch for Close ends. It returns the function that ends it, to be
// called without mu; nil if there is none, or watchClose is still beginning it. mu is held.
func (qs *queues) endWatch() (unwatch func() bool) {
	if qs.unwatch != nil {
		unwatch, qs.unwatch, qs.watched = qs.unwatch, nil, false
	}
	return unwatch
}

// wakeToClose wakes the leaders, whose attempts fail. From then on each new leader tries at once.
func (qs *queues) wakeToClose() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.closing = true
	for _, q := range qs.byName {
		q.wakeLeaders(locktrace.ByTurn)
	}
}
