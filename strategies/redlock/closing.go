package redlock

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast/locker/lease"
)

// closing is a strategy that reports the Close of its drivers.
type closing interface {
	OnClose(f func()) (stop func() bool)
}

// OnClose calls f once closing drivers leave no quorum of nodes. Middleware that waits calls it.
func (l *Locker) OnClose(f func()) (stop func() bool) {
	spare := new(atomic.Int64)
	spare.Store(int64(len(l.nodes) - l.quorum))
	var stops []func() bool
	for _, n := range l.nodes {
		if c, ok := lease.Find[closing](n.inner); ok {
			stops = append(stops, c.OnClose(func() {
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
