package faultproxy_test

import (
	"errors"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/resp"
)

func TestResetAll(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		p := s.proxy(t)
		client := s.dial(t, p.Addr())
		wantDo(t, client, "PONG", "PING")
		p.ResetAll()
		if v, err := client.Do("PING"); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("after a reset: %v, %v", v, err)
		}
		wantDo(t, s.dial(t, p.Addr()), "PONG", "PING")
	})
}

func TestHalfOpen(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		p := s.proxy(t)
		client, direct := s.dial(t, p.Addr()), s.dial(t, s.addr)
		wantDo(t, client, "PONG", "PING")
		p.HalfOpen()
		set := p.Add(faultproxy.Rule{Match: isSet})
		send(t, client, "SET", "k", 1)
		wait(t, "Hit", set.Hit())
		wantSilence(t, s, client)
		wantDo(t, direct, nil, "GET", "k")
		wantDo(t, s.dial(t, p.Addr()), "PONG", "PING")
		client.Close()
		wait(t, "Gone", set.Gone())
		wantNotYet(t, "Executed", set.Executed())
	})
}

// A message comes whole, however slowly.
func TestSlow(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		p := s.proxy(t)
		client := s.dial(t, p.Addr())
		const pause, text = time.Millisecond, "123456789 123456789 123456789 "
		p.Slow(pause)
		start := time.Now()
		wantDo(t, client, text, "ECHO", text) // 51 and 37 bytes, with the framing
		wantTook(t, s, start, (3+2)*pause)
		p.Slow(0)
		wantDo(t, client, text, "ECHO", text)
	})
}

// Requests sent together wait for the latency together.
func TestLatency(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		p := s.proxy(t)
		client := s.dial(t, p.Addr())
		const latency, n = 10 * time.Millisecond, 1000
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
		wantTook(t, s, start, latency)
		p.Latency(0)
		start = time.Now()
		wantDo(t, client, "PONG", "PING")
		wantTook(t, s, start, 0)
	})
}

func TestForget(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		p := s.proxy(t)
		client := s.dial(t, p.Addr())
		spent := p.Add(faultproxy.Rule{Match: faultproxy.Command("PING")})
		kept := p.Add(faultproxy.Rule{Match: faultproxy.Command("ECHO")})
		wantDo(t, client, "PONG", "PING")
		wait(t, "Hit", spent.Hit())
		p.Forget()
		check.Equal(t, "requests that are kept", p.Count(faultproxy.Any), 0)
		wantDo(t, client, "x", "ECHO", "x")
		wait(t, "Hit", kept.Hit())
	})
}

// A filter loses or delays single messages; later ones pass at once.
func TestFilter(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		p := s.proxy(t)
		client, subscriber := s.dial(t, p.Addr()), s.dial(t, p.Addr())
		send(t, subscriber, "SUBSCRIBE", "a")
		receive(t, subscriber)
		const late = time.Second
		p.Filter(func(v resp.Value) time.Duration {
			switch {
			case len(v.Elems) < 3:
				return 0
			case v.Elems[2].Text == "lost":
				return -1
			default:
				return late
			}
		})
		for _, text := range []string{"lost", "late"} {
			wantDo(t, client, int64(1), "PUBLISH", "a", text)
		}
		start := time.Now()
		wantDo(t, client, "PONG", "PING")
		wantTook(t, s, start, 0)
		check.Equal(t, "message", receive(t, subscriber)[2], "late")
		wantTook(t, s, start, late)
		p.Filter(nil)
		wantDo(t, client, int64(1), "PUBLISH", "a", "lost")
		check.Equal(t, "message", receive(t, subscriber)[2], "lost")
	})
}

// Closing the proxy ends its delayed replies.
func TestCloseDropsLateReplies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := mini(t, memnet.New())
		p := s.proxy(t)
		client := s.dial(t, p.Addr())
		p.Filter(func(resp.Value) time.Duration { return time.Hour })
		send(t, client, "PING")
		synctest.Wait()
		start := time.Now()
		p.Close()
		wantTook(t, s.place, start, 0)
		wantClosed(t, client)
	})
}
