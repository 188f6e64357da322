// Package localport finds TCP ports on 127.0.0.1 for test servers.
//
// The ports lie below the kernels' range for the local ports of outgoing connections (Linux: from
// 32768, others: from 49152). So the next client to dial does not take a port given up for a
// moment, as on the restart of a server. And a client that dials a port without a listener is
// refused, instead of now and then being connected to itself.
package localport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const (
	lowest   = 10_000
	highest  = 32_767
	attempts = 200
)

// Listen returns a listener on a free port of 127.0.0.1.
func Listen() (net.Listener, error) {
	var err error
	for range attempts {
		port := lowest + rand.IntN(highest-lowest+1)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("localport: no free port in %d..%d after %d attempts: %w", lowest, highest, attempts, err)
}

// Close closes a listener and gives its port up at once. After a plain Close it may accept
// connections for another moment: a process started just then by another goroutine has a copy of it
// until it executes its program.
func Close(l net.Listener) error {
	shutdown(l)
	return l.Close()
}

// Held is a port kept by Hold. Drop may be called again, and on nil.
type Held struct {
	once sync.Once
	drop func() error
	err  error
}

// Drop gives the port up.
func (h *Held) Drop() error {
	if h == nil {
		return nil
	}
	h.once.Do(func() { h.err = h.drop() })
	return h.err
}

// Of returns the port of a TCP listener.
func Of(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// Free returns n different ports, free a moment ago. Another process may take one before it is
// used: the caller must be ready to ask again.
func Free(n int) ([]int, error) {
	var open []net.Listener // until the last is found: so they differ
	defer func() {
		for _, l := range open {
			_ = Close(l)
		}
	}()
	ports := make([]int, n)
	for i := range ports {
		l, err := Listen()
		if err != nil {
			return nil, err
		}
		open = append(open, l)
		ports[i] = Of(l)
	}
	return ports, nil
}
