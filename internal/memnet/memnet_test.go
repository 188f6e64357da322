//realtime:ok the tests run in bubbles

//nolint:forbidigo // fake time
package memnet_test

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

const latency = 3 * time.Second

// took checks how much fake time has passed since start.
func (w world) took(start time.Time, want time.Duration, what string) {
	w.Helper()
	check.Took(w, what, start, want)
}

func TestLatency(t *testing.T) {
	t.Parallel()
	inMemory(t, func(w world, n *memnet.Net) {
		n.Latency = latency
		start := time.Now()
		client, server := w.connect()
		w.took(start, 2*latency, "Dial")
		start = time.Now()
		w.send(client, "first")
		time.Sleep(time.Second)
		w.send(client, "second")
		w.took(start, time.Second, "Write")
		w.receive(server, "first")
		w.took(start, latency, "the first segment")
		w.receive(server, "second")
		w.took(start, time.Second+latency, "the second segment")
		start = time.Now()
		w.must(client.CloseWrite())
		w.is(read(server), io.EOF)
		w.took(start, latency, "the end of the stream")
		start = time.Now()
		w.must(server.SetLinger(0))
		w.must(server.Close())
		w.is(read(client), syscall.ECONNRESET)
		w.took(start, latency, "the reset")
		start = time.Now()
		_, err := n.Dial(w.Context(), "tcp", "127.0.0.1:1")
		w.is(err, syscall.ECONNREFUSED)
		w.took(start, 2*latency, "the refusal")
	})
}

// A Write learns of the closed other end after a round trip.
func TestLatencyOfAWriteToAClosedEnd(t *testing.T) {
	t.Parallel()
	inMemory(t, func(w world, n *memnet.Net) {
		n.Latency = latency
		client, server := w.connect()
		w.must(server.Close())
		start := time.Now()
		w.is(eventually(w, client), syscall.EPIPE)
		w.took(start, 2*latency, "the news")
	})
}

func TestDeadlinesInFakeTime(t *testing.T) {
	t.Parallel()
	inMemory(t, func(w world, n *memnet.Net) {
		n.Latency = latency
		client, server := w.connect()
		start := time.Now()
		w.send(server, "x")
		w.must(client.SetReadDeadline(start.Add(latency - 1)))
		w.is(read(client), os.ErrDeadlineExceeded)
		w.took(start, latency-1, "the deadline")
		w.must(client.SetReadDeadline(start.Add(latency + 1)))
		w.must(read(client))
		w.took(start, latency, "the segment")
		result := w.waiting(client)
		w.must(client.SetReadDeadline(start.Add(time.Hour)))
		w.settle()
		w.must(client.SetReadDeadline(start.Add(2 * time.Hour)))
		w.is(<-result, os.ErrDeadlineExceeded)
		w.took(start, 2*time.Hour, "the later deadline")
	})
}

func TestDialUntilCtxEnds(t *testing.T) {
	t.Parallel()
	inMemory(t, func(w world, n *memnet.Net) {
		l := w.listen()
		n.Latency = time.Hour
		start := time.Now()
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		_, err := n.Dial(ctx, "tcp", l.Addr().String())
		w.wantErr(err, context.DeadlineExceeded, "dial tcp A: i/o timeout", true)
		w.took(start, time.Second, "Dial")
	})
}

// Dials wait for room, and nothing else waits for them.
func TestBacklog(t *testing.T) {
	t.Parallel()
	inMemory(t, func(w world, n *memnet.Net) {
		l, other := w.listen(), w.listen()
		dialAll := func(ctx context.Context) <-chan error {
			results := make(chan error, 300)
			for range cap(results) {
				go func() {
					c, err := n.Dial(ctx, "tcp", l.Addr().String())
					if err == nil {
						w.Cleanup(func() { c.Close() })
					}
					results <- err
				}()
			}
			w.settle()
			return results
		}
		ctx, cancel := context.WithCancel(w.Context())
		results := dialAll(ctx)
		room := len(results)
		if room == 0 || room == cap(results) {
			w.Fatalf("%d of %d dials wait", cap(results)-room, cap(results))
		}
		w.dial(other)
		w.accept(l)
		w.settle()
		check.Equal(w, "connections after one Accept", len(results), room+1)
		for range room + 1 {
			w.must(<-results)
		}
		cancel()
		for range cap(results) - room - 1 {
			w.is(<-results, context.Canceled)
		}
		results = dialAll(w.Context())
		w.must(l.Close())
		for range cap(results) {
			w.is(<-results, syscall.ECONNREFUSED)
		}
	})
}

// Whoever wins, no client waits for a missing Accept.
func TestDialBesideClose(t *testing.T) {
	t.Parallel()
	for range 20 {
		inMemory(t, func(w world, n *memnet.Net) {
			l := w.listen()
			var dials sync.WaitGroup
			for range 50 {
				dials.Go(func() {
					c, err := n.Dial(w.Context(), "tcp", l.Addr().String())
					if err == nil {
						err = read(c)
					}
					w.is(err, syscall.ECONNREFUSED, syscall.ECONNRESET)
				})
			}
			w.must(l.Close())
			dials.Wait()
		})
	}
}

func TestResetDropsWhatWasNotRead(t *testing.T) {
	t.Parallel()
	inMemory(t, func(w world, _ *memnet.Net) {
		client, server := w.connect()
		w.send(server, "abc")
		w.receive(client, "a")
		w.must(server.SetLinger(0))
		w.must(server.Close())
		for range 2 {
			w.is(read(client), syscall.ECONNRESET)
		}
	})
}

func TestWriteNeverWaits(t *testing.T) {
	t.Parallel()
	inMemory(t, func(w world, _ *memnet.Net) {
		client, server := w.connect()
		const writes, size = 10, 1 << 20
		for range writes {
			w.send(client, string(make([]byte, size)))
		}
		w.must(client.Close())
		if n, err := io.Copy(io.Discard, server); n != writes*size || err != nil {
			w.Errorf("read %d bytes, %v", n, err)
		}
	})
}

// An unused network runs nothing: fake time passes, and the bubble ends though bytes and
// connections are on their way.
func TestIdle(t *testing.T) {
	t.Parallel()
	inMemory(t, func(w world, n *memnet.Net) {
		n.Latency = latency
		l, err := n.Listen()
		w.must(err)
		var conns []net.Conn
		for range 3 {
			c, err := n.Dial(w.Context(), "tcp", l.Addr().String())
			w.must(err)
			conns = append(conns, c)
		}
		time.Sleep(24 * time.Hour)
		for _, c := range conns {
			w.send(c, "on its way")
		}
	})
}
