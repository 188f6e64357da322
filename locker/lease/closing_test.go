package lease_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/holdfast-go/holdfast/locker/lease"
)

// closable is closed when ctx ends.
type closable struct {
	ctx     context.Context //nolint:containedctx // ends at Close
	stopped chan struct{}   // closed when a watch ends
}

func (c closable) OnClose(f func()) (stop func() bool) {
	after := context.AfterFunc(c.ctx, f)
	return func() bool { defer close(c.stopped); return after() }
}

func newClosable() (c closable, end context.CancelFunc) {
	ctx, end := context.WithCancel(context.Background())
	return closable{ctx: ctx, stopped: make(chan struct{})}, end
}

func TestWatchClose(t *testing.T) {
	t.Parallel()
	c, end := newClosable()
	called := make(chan *int, 1)
	target := new(int)
	lease.WatchClose(c, target, func(target *int) { called <- target })
	end()
	if got := <-called; got != target {
		t.Errorf("f was called with %p, want %p", got, target)
	}
	runtime.KeepAlive(target)
}

// A watch does not keep its target in memory.
func TestWatchCloseEndsWithItsTarget(t *testing.T) {
	t.Parallel()
	c, end := newClosable()
	defer end()
	lease.WatchClose(c, new([1 << 10]byte), func(*[1 << 10]byte) { t.Error("f was called") })
	for {
		runtime.GC()
		select {
		case <-c.stopped:
			return
		case <-t.Context().Done():
			t.Fatal("the watch lasts")
		default:
			runtime.Gosched()
		}
	}
}
