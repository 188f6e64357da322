package redistest

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/localport"
)

// Relay passes bytes on between a replica and its master, and the master's later by a delay: a link
// with latency. It does not look at the bytes. Package faultproxy cannot stand here: replication is
// no protocol of requests and replies.
type Relay struct {
	listener net.Listener
	target   string
	delay    time.Duration
	ctx      context.Context // ends with Close
	stop     context.CancelFunc
	wg       sync.WaitGroup
}

// StartRelay starts a relay before the server at target for a test.
func StartRelay(tb TB, target string, delay time.Duration) *Relay {
	tb.Helper()
	l, err := localport.Listen()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	r := &Relay{listener: l, target: target, delay: delay}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.wg.Go(r.serve)
	tb.Cleanup(r.Close)
	return r
}

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
	r.late(ctx, replica, master)
}

// chunk is the data of one read.
type chunk struct {
	bytes []byte
	due   time.Time
}

// late copies from src to dst, each byte by the delay later.
func (r *Relay) late(ctx context.Context, dst io.Writer, src io.Reader) {
	underway := make(chan chunk, 1024)
	r.wg.Go(func() {
		defer close(underway)
		for buf := make([]byte, 64<<10); ; {
			n, err := src.Read(buf)
			if err != nil {
				return
			}
			select {
			case underway <- chunk{append([]byte(nil), buf[:n]...), time.Now().Add(r.delay)}:
			case <-ctx.Done():
				return
			}
		}
	})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for c := range underway {
		timer.Reset(time.Until(c.due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if _, err := dst.Write(c.bytes); err != nil {
			return
		}
	}
}
