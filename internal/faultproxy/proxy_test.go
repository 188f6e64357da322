package faultproxy_test

import (
	"bytes"
	"errors"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
)

func TestCutAll(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, addr string) {
		p := faultproxy.Start(t, addr)
		a, b := dial(t, p.Addr()), dial(t, p.Addr())
		wantDo(t, a, "PONG", "PING")
		wantDo(t, b, "PONG", "PING")
		if got := p.Conns(); got != 2 {
			t.Errorf("Conns %d, want 2", got)
		}
		p.CutAll()
		wantClosed(t, a)
		wantClosed(t, b)
		if got := p.Conns(); got != 0 {
			t.Errorf("Conns %d, want 0", got)
		}
		wantDo(t, dial(t, p.Addr()), "PONG", "PING")
	})
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, addr string) {
		p := faultproxy.Start(t, addr)
		direct, client, leaver := dial(t, addr), dial(t, p.Addr()), dial(t, p.Addr())
		wantDo(t, client, "PONG", "PING")
		wantDo(t, leaver, "PONG", "PING")
		set := p.Add(faultproxy.Rule{Match: faultproxy.Command("SET", "client")})
		left := p.Add(faultproxy.Rule{Match: faultproxy.Command("SET", "leaver")})
		p.Freeze()
		p.Freeze() // no matter
		send(t, client, "SET", "client", 1)
		send(t, leaver, "SET", "leaver", 1)
		leaver.Close()
		newcomer := dial(t, p.Addr())
		send(t, newcomer, "ECHO", "hello")
		wait(t, "Hit", set.Hit())
		wait(t, "Hit", left.Hit())
		wait(t, "Gone", left.Gone())
		wantSilence(t, client)
		wantSilence(t, newcomer)
		wantDo(t, direct, int64(0), "EXISTS", "client", "leaver")
		p.Thaw()
		p.Thaw()
		wantReply(t, client, "OK")
		wantReply(t, newcomer, "hello")
		wait(t, "Executed", left.Executed())
		wantDo(t, direct, int64(2), "EXISTS", "client", "leaver")
	})
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	p := faultproxy.Start(t, miniredis.RunT(t).Addr())
	old := dial(t, p.Addr())
	wantDo(t, old, "PONG", "PING")
	for range 2 {
		p.Refuse()
		if c, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial: %v, %v; want ECONNREFUSED", c, err)
		}
		wantDo(t, old, "PONG", "PING")
		if err := errors.Join(p.Accept(), p.Accept()); err != nil {
			t.Fatal(err)
		}
		wantDo(t, dial(t, p.Addr()), "PONG", "PING")
	}
}

func TestRetarget(t *testing.T) {
	t.Parallel()
	a, b := miniredis.RunT(t), miniredis.RunT(t)
	for name, m := range map[string]*miniredis.Miniredis{"a": a, "b": b} {
		if err := m.Set("name", name); err != nil {
			t.Fatal(err)
		}
	}
	p := faultproxy.Start(t, a.Addr())
	old := dial(t, p.Addr())
	wantDo(t, old, "a", "GET", "name")
	p.Retarget(b.Addr())
	wantDo(t, dial(t, p.Addr()), "b", "GET", "name")
	wantDo(t, old, "a", "GET", "name")
	b.Close()
	wantClosed(t, dial(t, p.Addr()))
}

// Either side's end ends the other, also while a reply is stalled.
func TestConnectionsEnd(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, addr string) {
		p := faultproxy.Start(t, addr)
		stall := p.Add(faultproxy.Rule{Match: isSet, Fault: faultproxy.Stall})
		quits, leaves, stalled := dial(t, p.Addr()), dial(t, p.Addr()), dial(t, p.Addr())
		send(t, stalled, "SET", "k", "v")
		wait(t, "Hit", stall.Hit())
		wantDo(t, leaves, "PONG", "PING")
		wantDo(t, quits, "OK", "QUIT")
		wantClosed(t, quits)
		leaves.Close()
		stalled.Close()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(patience); p.Conns() != 0; <-tick.C {
			if time.Now().After(end) {
				t.Fatalf("%d connections are open though all clients have gone", p.Conns())
			}
		}
	})
}

// Not parallel, so that no other test has a proxy.
func TestCloseWaitsForItsGoroutines(t *testing.T) {
	p, err := faultproxy.Listen(miniredis.RunT(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		wantDo(t, dial(t, p.Addr()), "PONG", "PING")
	}
	p.Close()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if bytes.Contains(stacks, []byte("faultproxy.(*")) {
		t.Errorf("goroutines are left:\n%s", stacks)
	}
}

// goleak in TestMain proves that nothing is left.
func TestCloseEndsWhateverGoesOn(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(p *faultproxy.Proxy) *faultproxy.Trap{
		"stalled reply": func(p *faultproxy.Proxy) *faultproxy.Trap {
			return p.Add(faultproxy.Rule{Match: isSet, Fault: faultproxy.Stall})
		},
		"stalled request": func(p *faultproxy.Proxy) *faultproxy.Trap {
			return p.Add(faultproxy.Rule{Match: isSet, Fault: faultproxy.StallRequest})
		},
		"dropped reply": func(p *faultproxy.Proxy) *faultproxy.Trap {
			return p.Add(faultproxy.Rule{Match: isSet, Fault: faultproxy.DropReply})
		},
		"frozen": func(p *faultproxy.Proxy) *faultproxy.Trap {
			trap := p.Add(faultproxy.Rule{Match: isSet})
			p.Freeze()
			return trap
		},
		"refusing": func(p *faultproxy.Proxy) *faultproxy.Trap {
			trap := p.Add(faultproxy.Rule{Match: isSet})
			p.Refuse()
			return trap
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := faultproxy.Listen(miniredis.RunT(t).Addr())
			if err != nil {
				t.Fatal(err)
			}
			client := dial(t, p.Addr())
			wantDo(t, client, "PONG", "PING")
			trap := prepare(p)
			send(t, client, "SET", "k", "v")
			wait(t, "Hit", trap.Hit())
			p.Close()
			p.Close()
			p.Freeze() // changes nothing any more
			if err := p.Accept(); err == nil {
				t.Error("a closed proxy accepts")
			}
			if c, err := net.Dial("tcp", p.Addr()); err == nil {
				c.Close()
				t.Error("a closed proxy is there")
			}
		})
	}
}
