//nolint:forbidigo // fake time
package main

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// The error of a server that never answered says for how long it was tried, and what was wrong. The
// last attempt, for which little time was left, says neither.
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

// A client for one server opens no connection before it is used: it would wait there for a server
// that does not answer, on top of what the command waits.
func TestClientConnectsWhenUsed(t *testing.T) {
	t.Parallel()
	for _, name := range clientNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0") // which accepts connections, and does not answer
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

// A connection to a server that does not answer closes in time, however many servers there are.
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
