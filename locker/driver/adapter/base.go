package adapter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// closeTimeout is how long Close waits for background work and for acquires in flight.
const closeTimeout = 3 * time.Second

// Base is embedded by an adapter. It implements the methods of driver.Driver about Close, and has
// defaults for EvalAcked and Delivery, of a client without WAIT and without a count of receivers.
// The zero Base is ready to use.
type Base struct {
	closed atomic.Bool

	mu      sync.Mutex
	ctx     context.Context // ends when Shutdown begins; nil: nobody has asked for it
	stop    context.CancelFunc
	closing bool
	running int
	end     func()        // leave; BeginAcquire returns it without an allocation
	idle    chan struct{} // made by Shutdown, closed when running falls to zero
}

// CheckOpen returns [driver.ErrClosed] once the driver is closed. Every call of an adapter begins
// with it.
func (b *Base) CheckOpen() error {
	if b.closed.Load() {
		return driver.ErrClosed
	}
	return nil
}

// Background implements driver.Driver.
func (b *Base) Background(f func(ctx context.Context)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() || b.closing && b.running == 0 { // Shutdown waits as long as anything runs
		return false
	}
	b.running++
	ctx := b.context()
	go func() {
		defer b.leave()
		f(ctx)
	}()
	return true
}

// UntilClose implements driver.Driver.
func (b *Base) UntilClose() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.context()
}

// context returns the context that ends when Shutdown begins. The mutex is held.
func (b *Base) context() context.Context {
	if b.ctx == nil {
		b.ctx, b.stop = context.WithCancel(context.Background())
	}
	if b.closing {
		b.stop()
	}
	return b.ctx
}

// BeginAcquire implements driver.Driver.
func (b *Base) BeginAcquire() (end func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		return nil, driver.ErrClosed
	}
	if b.end == nil {
		b.end = b.leave
	}
	b.running++
	return b.end, nil
}

func (b *Base) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	if b.running == 0 && b.idle != nil {
		close(b.idle)
	}
}

// EvalAcked implements driver.Driver for a client that cannot send a script and WAIT together.
func (*Base) EvalAcked(
	context.Context, *driver.Script, []string, []string, int, time.Duration,
) (driver.Reply, int, error) {
	return driver.Reply{}, 0, driver.NotSent(errors.ErrUnsupported)
}

// Server implements driver.Driver: there is one server.
func (b *Base) Server(string) any { return b }

// Delivery implements driver.Driver: [driver.DeliveryPlain].
func (*Base) Delivery(string) driver.Delivery { return driver.DeliveryPlain }

// Shutdown implements Close. It cancels background work, waits up to three seconds for it and for
// acquires in flight, marks the driver as closed, and closes hub unless it is nil. If work is still
// running then, the error matches [driver.ErrCleanUpUnfinished]. A second call returns
// [driver.ErrClosed].
func (b *Base) Shutdown(hub *Hub) error {
	b.mu.Lock()
	if b.closing {
		b.mu.Unlock()
		return driver.ErrClosed
	}
	b.closing = true
	idle := make(chan struct{})
	if b.running == 0 {
		close(idle)
	} else {
		b.idle = idle
	}
	if b.stop != nil {
		b.stop()
	}
	b.mu.Unlock()

	var err error
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
		err = driver.ErrCleanUpUnfinished
	}
	b.closed.Store(true)
	if hub != nil {
		err = errors.Join(err, hub.Close())
	}
	return err
}
