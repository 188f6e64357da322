package faultproxy_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker"
)

func receive(t *testing.T, c *resp.Conn) []any {
	t.Helper()
	v, err := c.Receive()
	check.Must(t, err)
	list, _ := v.Any().([]any)
	return list
}

// Messages come while a confirmation is stalled behind them, and a fault hits the
// confirmation, not a message.
func TestSubscriptionsAreDisturbedLikeCommands(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		for _, protocol := range []int{2, 3} {
			p := s.proxy(t)
			direct, client := s.dial(t, s.addr), s.dial(t, p.Addr())
			locker.Must(client.Do("HELLO", protocol))
			stall := p.Add(faultproxy.Rule{Match: faultproxy.Command("SUBSCRIBE", "b"), Fault: faultproxy.Stall})
			ping := p.Add(faultproxy.Rule{Match: faultproxy.Command("PING"), Fault: faultproxy.Cut})
			send(t, client, "SUBSCRIBE", "a")
			if got := receive(t, client); got[0] != "subscribe" || got[1] != "a" {
				t.Fatalf("confirmation %v", got)
			}
			send(t, client, "SUBSCRIBE", "b", "c")
			wait(t, "Hit", stall.Hit())
			wantSilence(t, s, client)
			wantDo(t, direct, int64(1), "PUBLISH", "a", "m")
			stall.Release()
			for _, want := range [][2]string{{"subscribe", "b"}, {"subscribe", "c"}, {"message", "a"}} {
				if got := receive(t, client); got[0] != want[0] || got[1] != want[1] {
					t.Fatalf("protocol %d: message %v, want %v", protocol, got, want)
				}
			}
			wantDo(t, direct, int64(1), "PUBLISH", "c", "m")
			check.Equal(t, "message", receive(t, client)[2], "m")
			wantNotYet(t, "Hit", ping.Hit())
			send(t, client, "PING")
			wait(t, "Hit", ping.Hit())
			wantClosed(t, client)
		}
	})
}

// A cluster announces the proxy before each node.
func TestProxiesBeforeACluster(t *testing.T) {
	t.Parallel()
	proxies := map[string]*faultproxy.Proxy{}
	c := redistest.StartCluster(t, 1, redistest.Options{Announce: func(addr string) (int, error) {
		p, err := faultproxy.Listen(addr)
		if err != nil {
			return 0, err
		}
		t.Cleanup(p.Close)
		proxies[p.Addr()] = p
		return p.Port(), nil
	}})
	p := proxies[c.Addrs()[0]]
	if p == nil {
		t.Fatalf("no proxy at %v", c.Addrs())
	}
	client := place{network: faultproxy.TCP}.dial(t, p.Addr())
	slots, err := client.Do("CLUSTER", "SLOTS")
	check.Must(t, err)
	check.Equal(t, "port that clients are told", slots.([]any)[0].([]any)[2].([]any)[1], any(int64(p.Port())))
	cut := p.Add(faultproxy.Rule{Match: faultproxy.Command("EVAL", "k"), Fault: faultproxy.Cut})
	send(t, client, "EVAL", "return redis.call('INCR', KEYS[1])", 1, "k")
	wait(t, "Hit", cut.Hit())
	wantClosed(t, client)
	check.Equal(t, "GET", c.Nodes()[0].MustCommand(t, "GET", "k"), "1")
}

func TestInlineRequestsAndBrokenOnes(t *testing.T) {
	t.Parallel()
	s := place{faultproxy.TCP, redistest.Start(t, redistest.Options{}).Addr()}
	p := faultproxy.StartOn(t, nil, s.addr)
	client := s.dial(t, p.Addr())
	for _, c := range []struct{ sent, want string }{{"ECHO inline\r\nPING\n", "inline"}, {"", "PONG"}} {
		locker.Must(client.Write([]byte(c.sent)))
		wantReply(t, client, c.want)
	}
	check.Equal(t, "Count", p.Count(faultproxy.Command("ECHO", "inline")), 1)
	locker.Must(client.Write([]byte("*oops\r\n")))
	wantClosed(t, client)
	wantDo(t, s.dial(t, p.Addr()), "PONG", "PING")
}
