package faultproxy_test

import (
	"bytes"
	"errors"
	"runtime"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/resp"
)

func TestCutAll(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		p := s.proxy(t)
		a, b := s.dial(t, p.Addr()), s.dial(t, p.Addr())
		wantDo(t, a, "PONG", "PING")
		wantDo(t, b, "PONG", "PING")
		check.Equal(t, "Conns", p.Conns(), 2)
		p.CutAll()
		wantClosed(t, a)
		wantClosed(t, b)
		check.Equal(t, "Conns", p.Conns(), 0)
		wantDo(t, s.dial(t, p.Addr()), "PONG", "PING")
	})
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		p := s.proxy(t)
		direct, client, leaver := s.dial(t, s.addr), s.dial(t, p.Addr()), s.dial(t, p.Addr())
		wantDo(t, client, "PONG", "PING")
		wantDo(t, leaver, "PONG", "PING")
		set := p.Add(faultproxy.Rule{Match: faultproxy.Command("SET", "client")})
		left := p.Add(faultproxy.Rule{Match: faultproxy.Command("SET", "leaver")})
		p.Freeze()
		p.Freeze() // no matter
		send(t, client, "SET", "client", 1)
		send(t, leaver, "SET", "leaver", 1)
		leaver.Close()
		newcomer := s.dial(t, p.Addr())
		send(t, newcomer, "ECHO", "hello")
		wait(t, "Hit", set.Hit())
		wait(t, "Hit", left.Hit())
		wait(t, "Gone", left.Gone())
		wantSilence(t, s, client)
		wantSilence(t, s, newcomer)
		wantDo(t, direct, int64(0), "EXISTS", "client", "leaver")
		p.Thaw()
		p.Thaw()
		wantReply(t, client, "OK")
		wantReply(t, newcomer, "hello")
		wait(t, "Executed", left.Executed())
		wantDo(t, direct, int64(2), "EXISTS", "client", "leaver")
	})
}

// The begin and the end of connections are held back too.
func TestFreezeAndConnections(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		network := memnet.New()
		l, err := network.Listen()
		check.Must(t, err)
		defer l.Close()
		s := place{network, l.Addr().String()}
		p := s.proxy(t)
		accepted := make(chan *resp.Conn, 3)
		go func() {
			for range cap(accepted) {
				c, err := l.Accept()
				if err != nil {
					return
				}
				accepted <- resp.NewConn(c)
			}
		}()
		leaver := s.dial(t, p.Addr())
		left := <-accepted
		client := s.dial(t, p.Addr())
		server := <-accepted
		p.Freeze()
		leaver.Close()
		server.Close()
		s.dial(t, p.Addr())
		wantSilence(t, s, left)
		wantSilence(t, s, client)
		check.Equal(t, "connections of a frozen proxy", len(accepted), 0)
		p.Thaw()
		wantClosed(t, left)
		wantClosed(t, client)
		(<-accepted).Close()
		left.Close()
	})
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	eachNetwork(t, func(t *testing.T, network faultproxy.Network) {
		s := mini(t, network)
		p := s.proxy(t)
		old := s.dial(t, p.Addr())
		wantDo(t, old, "PONG", "PING")
		for range 2 {
			p.Refuse()
			check.Is(t, check.ErrOf(network.Dial(t.Context(), "tcp", p.Addr())), syscall.ECONNREFUSED)
			wantDo(t, old, "PONG", "PING")
			check.Must(t, errors.Join(p.Accept(), p.Accept()))
			wantDo(t, s.dial(t, p.Addr()), "PONG", "PING")
		}
	})
}

func TestRetarget(t *testing.T) {
	t.Parallel()
	eachNetwork(t, func(t *testing.T, network faultproxy.Network) {
		a, b := mini(t, network), mini(t, network)
		for name, m := range map[string]miniServer{"a": a, "b": b} {
			check.Must(t, m.Set("name", name))
		}
		p := a.proxy(t)
		old := a.dial(t, p.Addr())
		wantDo(t, old, "a", "GET", "name")
		p.Retarget(b.addr)
		wantDo(t, b.dial(t, p.Addr()), "b", "GET", "name")
		wantDo(t, old, "a", "GET", "name")
		b.close()
		wantClosed(t, b.dial(t, p.Addr()))
	})
}

// Either side's end ends the other, also while a reply is stalled.
func TestConnectionsEnd(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		p := s.proxy(t)
		stall := p.Add(faultproxy.Rule{Match: isSet, Fault: faultproxy.Stall})
		quits, leaves, stalled := s.dial(t, p.Addr()), s.dial(t, p.Addr()), s.dial(t, p.Addr())
		send(t, stalled, "SET", "k", "v")
		wait(t, "Hit", stall.Hit())
		wantDo(t, leaves, "PONG", "PING")
		wantDo(t, quits, "OK", "QUIT")
		wantClosed(t, quits)
		leaves.Close()
		stalled.Close()
		check.Eventually(t, "no connection is open, for all clients have gone", func() bool { return p.Conns() == 0 })
	})
}

// Not parallel, so no other test has a proxy.
func TestCloseWaitsForItsGoroutines(t *testing.T) {
	s := mini(t, faultproxy.TCP)
	p := faultproxy.Start(t, s.addr)
	for range 20 {
		wantDo(t, s.dial(t, p.Addr()), "PONG", "PING")
	}
	p.Close()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for line := range bytes.Lines(stacks) { // one that is done may still be there, and names its creator
		if bytes.Contains(line, []byte("faultproxy.(*")) && !bytes.HasPrefix(line, []byte("created by ")) {
			t.Fatalf("goroutines are left:\n%s", stacks)
		}
	}
}

// goleak in TestMain proves that nothing is left.
func TestCloseEndsWhateverGoesOn(t *testing.T) {
	t.Parallel()
	type test struct {
		fault faultproxy.Fault
		then  func(*faultproxy.Proxy)
	}
	check.Each(t, map[string]test{
		"stalled reply":   {fault: faultproxy.Stall},
		"stalled request": {fault: faultproxy.StallRequest},
		"dropped reply":   {fault: faultproxy.DropReply},
		"frozen":          {then: (*faultproxy.Proxy).Freeze},
		"refusing":        {then: (*faultproxy.Proxy).Refuse},
	}, func(t *testing.T, tc test) {
		eachNetwork(t, func(t *testing.T, network faultproxy.Network) {
			s := mini(t, network)
			p := s.proxy(t)
			client := s.dial(t, p.Addr())
			wantDo(t, client, "PONG", "PING")
			trap := p.Add(faultproxy.Rule{Match: isSet, Fault: tc.fault})
			if tc.then != nil {
				tc.then(p)
			}
			send(t, client, "SET", "k", "v")
			wait(t, "Hit", trap.Hit())
			p.Close()
			p.Close()
			p.Freeze() // changes nothing any more
			check.Equal(t, "a closed proxy accepts", p.Accept() == nil, false)
			if c, err := network.Dial(t.Context(), "tcp", p.Addr()); err == nil {
				c.Close()
				t.Error("a closed proxy is there")
			}
		})
	})
}
