package redlock

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast/locker/lease"
)

// OnClose implements lease.Closing: it calls f once closing drivers leave no quorum of nodes.
func (l *Locker) OnClose(f func()) (stop func() bool) {
	spare := new(atomic.Int64)
	spare.Store(int64(len(l.nodes) - l.quorum))
	var stops []func() bool
	for _, n := range l.nodes {
		if closing, ok := lease.Find[lease.Closing](n.inner); ok {
			stops = append(stops, closing.OnClose(func() {
				if spare.Add(-1) == -1 {
					f()
				}
			}))
		}
	}
	return func() (stopped bool) {
		for _, stop := range stops {
			stopped = stop() || stopped
		}
		return stopped && spare.Load() >= 0
	}
}
