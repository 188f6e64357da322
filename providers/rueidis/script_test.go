package rueidis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// wantInt fails the test unless the reply is n.
func wantInt(t *testing.T, what string, reply driver.Reply, err error, n int64) {
	t.Helper()
	if err == nil {
		var got int64
		if got, err = reply.Int(0); err == nil && got == n {
			return
		}
	}
	t.Errorf("%s: %v, %v; want %d", what, reply, err, n)
}

func TestNoScript(t *testing.T) {
	t.Parallel()
	p := mini(t)
	drv := dial(t, single(p.Addr()))
	for i := range 3 {
		reply, err := drv.Eval(t.Context(), increment, []string{"n"}, nil)
		wantInt(t, "Eval", reply, err, int64(i+1)) // more if it ran twice
	}
	if sha, source := p.Count(faultproxy.Command("EVALSHA")), p.Count(faultproxy.Command("EVAL")); sha != 3 || source != 1 {
		t.Errorf("%d EVALSHA and %d EVAL were sent; want 3 and 1", sha, source)
	}
}

// A command whose reply is lost may have been executed. rueidis sends again what it takes for
// read-only.
func TestLostReplyIsNotSentAgain(t *testing.T) {
	t.Parallel()
	one := []driver.Call{{Script: increment, Keys: []string{"k"}}}
	sends := map[string]struct {
		command string
		send    func(ctx context.Context, drv driver.Driver) error
	}{
		"SetNX": {"SET", func(ctx context.Context, drv driver.Driver) error {
			_, err := drv.SetNX(ctx, "k", "v", time.Minute)
			return err
		}},
		"Eval by digest": {"EVALSHA", func(ctx context.Context, drv driver.Driver) error {
			_, err := drv.Eval(ctx, increment, []string{"k"}, nil)
			return err
		}},
		"Eval by source": {"EVAL", func(ctx context.Context, drv driver.Driver) error {
			_, err := drv.Eval(ctx, increment, []string{"k"}, nil)
			return err
		}},
		"EvalMany by digest": {"EVALSHA", func(ctx context.Context, drv driver.Driver) error {
			return drv.(driver.Batcher).EvalMany(ctx, one)[0].Err
		}},
		"EvalMany by source": {"EVAL", func(ctx context.Context, drv driver.Driver) error {
			return drv.(driver.Batcher).EvalMany(ctx, one)[0].Err
		}},
	}
	for mode, set := range clientModes {
		for name, s := range sends {
			t.Run(mode+", "+name, func(t *testing.T) {
				t.Parallel()
				p := mini(t)
				opts := single(p.Addr())
				set(&opts)
				drv := dial(t, opts)
				trap := p.Add(faultproxy.Rule{Match: faultproxy.Command(s.command), Fault: faultproxy.Cut})
				if err := s.send(t.Context(), drv); err == nil || driver.NotExecuted(err) || driver.CodeOf(err) != "" {
					t.Errorf("%v; want an error of unknown outcome", err)
				}
				wait(t, "the lost reply", trap.Hit())
				if _, err := drv.SetNX(t.Context(), "another", "v", time.Minute); err != nil { // in the order of sending
					t.Errorf("SetNX on a new connection: %v", err)
				}
				if n := p.Count(faultproxy.Command(s.command, "k")); n != 1 {
					t.Errorf("%s was sent %d times", s.command, n)
				}
			})
		}
	}
}

func TestLostReplyInClusterIsNotSentAgain(t *testing.T) {
	t.Parallel()
	proxies, c := proxiedCluster(t)
	drv := dial(t, redis.ClientOption{InitAddress: c.Addrs()})
	for _, p := range proxies {
		p.Add(faultproxy.Rule{Match: faultproxy.Contains("lost"), Every: true, Fault: faultproxy.Cut})
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience) // a client that tries again would not stop
	defer cancel()
	var errs []error
	_, err := drv.SetNX(ctx, "lost", "v", time.Minute)
	errs = append(errs, err)
	_, err = drv.Eval(ctx, increment, []string{"lost"}, nil)
	errs = append(errs, err)
	for _, r := range drv.(driver.Batcher).EvalMany(ctx, []driver.Call{{Script: increment, Keys: []string{"lost"}}, {Script: increment, Keys: []string{"another"}}}) {
		errs = append(errs, r.Err)
	}
	for i, err := range errs[:3] {
		if err == nil || driver.NotExecuted(err) {
			t.Errorf("command %d: %v; want an error of unknown outcome", i, err)
		}
	}
	if errs[3] != nil {
		t.Errorf("EvalMany, at another node: %v", errs[3])
	}
	sent := 0
	for _, p := range proxies {
		sent += p.Count(faultproxy.Contains("lost"))
	}
	if sent != 3 {
		t.Errorf("3 commands were sent %d times", sent)
	}
}

// proxiedCluster returns a cluster whose nodes are reached through proxies.
func proxiedCluster(t *testing.T) ([]*faultproxy.Proxy, *redistest.Cluster) {
	t.Helper()
	started := make(chan *faultproxy.Proxy, 100) // one per attempt to find a port
	c := redistest.StartCluster(t, 3, redistest.Options{Announce: func(addr string) (int, error) {
		p := faultproxy.Start(t, addr)
		started <- p
		return p.Port(), nil
	}})
	var proxies []*faultproxy.Proxy
	for len(started) > 0 {
		proxies = append(proxies, <-started)
	}
	return proxies, c
}

func TestEvalMany(t *testing.T) {
	t.Parallel()
	p := mini(t)
	drv := dial(t, single(p.Addr()))
	batch := drv.(driver.Batcher)
	if _, err := drv.Eval(t.Context(), increment, []string{"a"}, nil); err != nil {
		t.Fatal(err)
	}
	raise := driver.NewScript(`return redis.error_reply("MYCODE text")`)
	double := driver.NewScript(`return 2 * redis.call("INCR", KEYS[1])`) // unknown to the server
	calls := []driver.Call{
		{Script: double, Keys: []string{"b"}},
		{Script: increment, Keys: []string{"a"}},
		{Script: raise},
		{Script: double, Keys: []string{"c"}},
	}
	for i := range int64(2) {
		got := batch.EvalMany(t.Context(), calls)
		wantInt(t, "unknown script", got[0].Reply, got[0].Err, 2*(i+1))
		wantInt(t, "known script", got[1].Reply, got[1].Err, i+2)
		if driver.CodeOf(got[2].Err) != "MYCODE" {
			t.Errorf("raising script: %v", got[2].Err)
		}
		wantInt(t, "unknown script again", got[3].Reply, got[3].Err, 2*(i+1))
	}
	if n := p.Count(faultproxy.Command("EVAL")); n != 4 { // one by Eval, three by the first batch
		t.Errorf("%d scripts were sent by source", n)
	}
	if got := batch.EvalMany(t.Context(), nil); len(got) != 0 {
		t.Errorf("EvalMany of nothing: %v", got)
	}
}

func TestKeysOfTwoSlots(t *testing.T) {
	t.Parallel()
	drv := dial(t, redis.ClientOption{InitAddress: cluster.Get(t).Addrs()})
	keys := []string{lease.NewToken() + "{a}", lease.NewToken() + "{b}"}
	_, err := drv.Eval(t.Context(), increment, keys, nil)
	if !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Eval: %v; want an InvalidError that was not sent", err)
	}
	// In a batch the others are not concerned: some nodes at once, and a script without keys, which
	// rueidis does not mix.
	got := drv.(driver.Batcher).EvalMany(t.Context(), []driver.Call{
		{Script: increment, Keys: keys[:1]},
		{Script: increment, Keys: keys},
		{Script: driver.NewScript(`redis.call("SET", "anywhere", 1) return 3`)},
		{Script: increment, Keys: keys[1:]},
	})
	wantInt(t, "first key", got[0].Reply, got[0].Err, 1)
	if !errors.Is(got[1].Err, driver.ErrNotSent) {
		t.Errorf("both keys: %v; want ErrNotSent", got[1].Err)
	}
	if driver.CodeOf(got[2].Err) != "ERR" { // the server's, since the script touched a key that is not its own
		wantInt(t, "no keys", got[2].Reply, got[2].Err, 3)
	}
	wantInt(t, "second key", got[3].Reply, got[3].Err, 1)
}

func TestMovedIsFollowed(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, redistest.Options{})
	drv := dial(t, redis.ClientOption{InitAddress: c.Addrs()})
	slot := redistest.Slot("moving")
	to := c.Nodes()[0]
	if c.NodeForSlot(slot) == to {
		to = c.Nodes()[1]
	}
	if err := c.MoveSlot(t.Context(), slot, to); err != nil {
		t.Fatal(err)
	}
	if set, err := drv.SetNX(t.Context(), "moving", "v", time.Minute); !set || err != nil {
		t.Errorf("SetNX after the slot has moved: %v, %v", set, err)
	}
	reply, err := drv.Eval(t.Context(), compare, []string{"moving"}, []string{"v"})
	wantInt(t, "Eval after the slot has moved", reply, err, 1)
}

// What was written before the client was closed may be executed, though rueidis answers ErrClosing.
func TestClientClosedInFlight(t *testing.T) {
	t.Parallel()
	p := mini(t)
	opts := single(p.Addr())
	opts.AlwaysPipelining = true
	client := newClient(t, opts)
	drv := newDriver(t, client)
	trap := p.Add(faultproxy.Rule{Match: faultproxy.Command("SET"), Fault: faultproxy.Stall})
	errs := make(chan error, 1)
	go func() {
		_, err := drv.SetNX(context.Background(), "k", "v", time.Minute)
		errs <- err
	}()
	wait(t, "SET", trap.Hit())
	within(t, "Close", client.Close)
	if err := <-errs; !errors.Is(err, redis.ErrClosing) || driver.NotExecuted(err) {
		t.Errorf("%v; want ErrClosing, and the outcome unknown", err)
	}
}
