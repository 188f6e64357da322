package drivertest

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/conformance/internal/suitetest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// redirected is a connection that records a redirection among its replies.
type redirected struct {
	net.Conn
	by *atomic.Pointer[driver.ServerError]
}

func (r redirected) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	for _, code := range []string{"MOVED", "ASK"} {
		if bytes.HasPrefix(p[:n], []byte("-"+code)) {
			r.by.Store(&driver.ServerError{Text: code + " 1 127.0.0.1:1"})
		}
	}
	return n, err
}

// The suite fails on a driver that reports the redirection of a command after its next reply was
// lost.
func TestFlawedRedirections(t *testing.T) {
	t.Parallel()
	flawed := Harness{Dial: func(tb testing.TB, target Target) (driver.Driver, error) {
		var by atomic.Pointer[driver.ServerError]
		target.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return redirected{conn, &by}, err
		}
		return suitetest.Mapped(func(err error) error {
			if reply := by.Load(); reply != nil && err != nil && !driver.NotExecuted(err) {
				return reply
			}
			return err
		}).Dial(tb, suite.Target(target))
	}}
	suitetest.Catch(t, []suitetest.Mutant{{
		Name: "reports a redirection whose next reply was lost", Flawed: flawed.suite(),
		Caught: []string{"a lost reply after a redirection leaves the outcome unknown"},
	}})
}
