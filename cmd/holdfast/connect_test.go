//nolint:forbidigo // fake time
package main

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// The error of a silent server reports how long it was tried, and the cause; not the short last
// attempt.
func TestAcquireUnreachable(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		refused := driver.NotSent(syscall.ECONNREFUSED)
		l := locker.Func(func(_ context.Context, req locker.Request) (*locker.Lock, error) {
			const dialing = 400 * time.Millisecond
			if req.MaxWait < dialing {
				time.Sleep(req.MaxWait)
				return nil, driver.NotSent(locker.ErrMaxWait)
			}
			time.Sleep(dialing)
			return nil, refused
		})
		_, err := acquire(t.Context(), l, locker.Request{Name: "a"}, 1300*time.Millisecond, func(error) {})
		if want := refused.Error() + "; tried for 1.3s"; !errors.Is(err, syscall.ECONNREFUSED) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		check.Equal(t, "status", operationStatus(err), statusUnreachable)
	})
}

// An acquire of a lock that is held waits for MaxWait in all.
func TestAcquireHeldForLong(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		held := locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) {
			time.Sleep(400 * time.Millisecond)
			return nil, &locker.ContentionError{}
		})
		l := locker.Must(holdfast.Wrap(held, holdfast.Config{}))
		begun, shown := time.Now(), 0
		_, err := acquire(t.Context(), l, locker.Request{Name: "a", MaxWait: 2 * time.Second}, time.Minute, func(error) { shown++ })
		check.Is(t, err, locker.ErrNotAcquired, locker.ErrMaxWait)
		check.Took(t, "acquire", begun, 2*time.Second)
		check.Equal(t, "calls of onHeld", shown, 1)
	})
}

// A client for one server opens no connection before its use: there it would wait for a silent
// server, on top of the command's own wait.
func TestClientConnectsWhenUsed(t *testing.T) {
	t.Parallel()
	for _, name := range clientNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and does not answer
			check.Must(t, err)
			defer l.Close()
			s := locker.Must(clients[name](credentials{target: target{network: "tcp", addrs: []string{l.Addr().String()}}}))
			c := connection{s}
			defer c.close()
			marker := locker.Must(net.Dial("tcp", l.Addr().String()))
			defer marker.Close()
			first := locker.Must(l.Accept())
			defer first.Close()
			check.Equal(t, "first connection", first.RemoteAddr().String(), marker.LocalAddr().String())
		})
	}
}

// silent is a driver whose clean-up does not end before its server answers.
type silent struct {
	driver.Driver
	answered chan struct{}
}

func (d silent) Close() error { <-d.answered; return nil }

// Connections to silent servers close in time, however many there are.
func TestCloseIsBounded(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		answered := make(chan struct{})
		defer close(answered)
		s := &server{drv: silent{answered: answered}, close: func() {}}
		begun := time.Now()
		connection{s, s, s}.close()
		check.Took(t, "Close", begun, closeTimeout)
	})
}
