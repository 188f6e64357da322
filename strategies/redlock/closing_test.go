package redlock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// closableNode is a node whose driver is a Base.
type closableNode struct {
	locker.Locker
	adapter.Base
}

func (n *closableNode) OnClose(f func()) (stop func() bool) {
	return context.AfterFunc(n.UntilClose(), f)
}

// OnClose is called once the nodes that are left are no quorum.
func TestOnClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bases, nodes := make([]*closableNode, 5), make([]locker.Locker, 5)
		for i := range nodes {
			bases[i] = new(closableNode)
			nodes[i] = bases[i]
		}
		l := locker.Must(redlock.New(nodes, redlock.Config{}))
		closed, stopped := 0, 0
		l.OnClose(func() { closed++ })
		stop := l.OnClose(func() { stopped++ })
		for i, b := range bases {
			if i == 2 && !stop() {
				t.Error("stop says that it came too late")
			}
			check.OK(t, b.Shutdown(nil))
			synctest.Wait()
			if want := min(i/2, 1); closed != want || stopped > 0 {
				t.Errorf("with %d of 5 nodes closed: called %d times, want %d; %d after stop", i+1, closed, want, stopped)
			}
		}
	})
}
