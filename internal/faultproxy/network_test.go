package faultproxy_test

import (
	"errors"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
)

func TestResetAll(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, addr string) {
		p := faultproxy.Start(t, addr)
		client := dial(t, p.Addr())
		wantDo(t, client, "PONG", "PING")
		p.ResetAll()
		if v, err := client.Do("PING"); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("after a reset: %v, %v", v, err)
		}
		wantDo(t, dial(t, p.Addr()), "PONG", "PING")
	})
}

func TestHalfOpen(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, addr string) {
		p := faultproxy.Start(t, addr)
		client, direct := dial(t, p.Addr()), dial(t, addr)
		wantDo(t, client, "PONG", "PING")
		p.HalfOpen()
		set := p.Add(faultproxy.Rule{Match: isSet})
		send(t, client, "SET", "k", 1)
		wait(t, "Hit", set.Hit())
		wantSilence(t, client)
		wantDo(t, direct, nil, "GET", "k")
		wantDo(t, dial(t, p.Addr()), "PONG", "PING")
		client.Close()
		wait(t, "Gone", set.Gone())
		wantNotYet(t, "Executed", set.Executed())
	})
}

// A message comes whole, however slowly.
func TestSlow(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, addr string) {
		p := faultproxy.Start(t, addr)
		client := dial(t, p.Addr())
		p.Slow(time.Millisecond)
		const text = "a message that is longer than one piece, and than two"
		start := time.Now()
		wantDo(t, client, text, "ECHO", text)
		if took := time.Since(start); took < 6*time.Millisecond { // three pieces each way
			t.Errorf("slow bytes took %v", took)
		}
		p.Slow(0)
		wantDo(t, client, text, "ECHO", text)
	})
}

// Requests that are sent together wait for the latency together: one after the other, these would
// outlast the patience of these tests.
func TestLatency(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, addr string) {
		p := faultproxy.Start(t, addr)
		client := dial(t, p.Addr())
		const latency, n = 50 * time.Millisecond, 1000
		p.Latency(latency)
		start := time.Now()
		go func() {
			for i := range n {
				_ = client.Send("ECHO", i)
			}
		}()
		for i := range n {
			wantReply(t, client, strconv.Itoa(i))
		}
		if took := time.Since(start); took < latency {
			t.Errorf("answered within %v", took)
		}
		p.Latency(0)
		wantDo(t, client, "PONG", "PING")
	})
}

func TestForget(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, addr string) {
		p := faultproxy.Start(t, addr)
		client := dial(t, p.Addr())
		spent := p.Add(faultproxy.Rule{Match: faultproxy.Command("PING")})
		kept := p.Add(faultproxy.Rule{Match: faultproxy.Command("ECHO")})
		wantDo(t, client, "PONG", "PING")
		wait(t, "Hit", spent.Hit())
		p.Forget()
		if n := p.Count(faultproxy.Any); n != 0 {
			t.Errorf("%d requests are kept", n)
		}
		wantDo(t, client, "x", "ECHO", "x")
		wait(t, "Hit", kept.Hit())
	})
}
