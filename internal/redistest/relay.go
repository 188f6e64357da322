package redistest

import (
	"context"
	"io"
	"net"
	"sync"

	"github.com/holdfast-go/holdfast/internal/localport"
)

// Relay passes bytes on between a replica and its master. Those of the master can be held back. It does
// not look at the bytes. Package faultproxy cannot stand here: replication is no protocol of requests and
// replies.
type Relay struct {
	listener net.Listener
	target   string
	flow     chan struct{}   // of capacity 1; empty while the bytes of the master are held back
	ctx      context.Context // ends with Close
	stop     context.CancelFunc
	wg       sync.WaitGroup
}

// StartRelay starts a relay before the server at target for a test.
func StartRelay(tb TB, target string) *Relay {
	tb.Helper()
	l, err := localport.Listen()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	r := &Relay{listener: l, target: target, flow: make(chan struct{}, 1)}
	r.Pass()
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.wg.Go(r.serve)
	tb.Cleanup(r.Close)
	return r
}

// Hold holds the bytes of the master back from now on.
func (r *Relay) Hold() { <-r.flow }

// Pass ends a Hold: the bytes pass, those held back first.
func (r *Relay) Pass() { r.flow <- struct{}{} }

// Addr returns the address for the replica to dial.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Close ends the relay and its connections.
func (r *Relay) Close() {
	r.stop()
	_ = r.listener.Close()
	r.wg.Wait()
}

func (r *Relay) serve() {
	for {
		replica, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.relay(replica) })
	}
}

func (r *Relay) relay(replica net.Conn) {
	defer replica.Close()
	var d net.Dialer
	master, err := d.DialContext(r.ctx, "tcp", r.target)
	if err != nil {
		return
	}
	defer master.Close()
	ctx, cancel := context.WithCancel(r.ctx)
	context.AfterFunc(ctx, func() {
		_ = replica.Close()
		_ = master.Close()
	})
	r.wg.Go(func() {
		defer cancel()
		_, _ = io.Copy(master, replica) // either end may go at any time
	})
	defer cancel()
	for buf := make([]byte, 64<<10); ; {
		n, err := master.Read(buf)
		if err != nil {
			return
		}
		select {
		case <-r.flow:
		case <-ctx.Done():
			return
		}
		_, err = replica.Write(buf[:n])
		r.flow <- struct{}{}
		if err != nil {
			return
		}
	}
}
