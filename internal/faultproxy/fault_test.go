package faultproxy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
)

// Each case sends SET k 1 through the rule; the connection straight to the server shows whether it
// was executed.
func TestFaults(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		for i, tc := range []struct {
			fault    faultproxy.Fault
			by       time.Duration
			executed any // answer to GET k when the trap was hit
			closed   bool
			release  bool // let go, then the reply comes
			replies  bool // the reply comes by itself
		}{
			{fault: faultproxy.Watch, replies: true, executed: "either"},
			{fault: faultproxy.DropReply, executed: "1"},
			{fault: faultproxy.Cut, executed: "1", closed: true},
			{fault: faultproxy.CutWithin, executed: "1", closed: true},
			{fault: faultproxy.CutBefore, executed: nil, closed: true},
			{fault: faultproxy.Stall, executed: "1", release: true},
			{fault: faultproxy.StallRequest, executed: nil, release: true},
			{fault: faultproxy.Delay, by: time.Millisecond, executed: "1", replies: true},
			{fault: faultproxy.Delay, by: time.Hour, executed: "1", release: true},
		} {
			t.Log("fault", tc.fault, "by", tc.by)
			key := fmt.Sprint("key ", i)
			direct, p := s.dial(t, s.addr), s.proxy(t)
			trap := p.Add(faultproxy.Rule{Match: faultproxy.Command("SET", key), Fault: tc.fault, By: tc.by})
			client := s.dial(t, p.Addr())
			wantDo(t, client, "PONG", "PING")
			wantNotYet(t, "Hit", trap.Hit())

			start := time.Now()
			send(t, client, "set", key, 1)
			wait(t, "Hit", trap.Hit())
			if tc.executed != "either" {
				wantDo(t, direct, tc.executed, "GET", key)
			}
			if tc.closed {
				wantClosed(t, client)
				wait(t, "Gone", trap.Gone())
			} else {
				wantNotYet(t, "Gone", trap.Gone())
			}
			if !tc.closed && !tc.replies {
				wantSilence(t, s, client)
			}
			if tc.release {
				trap.Release()
			}
			if tc.release || tc.replies {
				wantReply(t, client, "OK")
				if tc.replies {
					wantTook(t, s, start, tc.by)
				}
				wait(t, "Executed", trap.Executed())
				wantDo(t, client, "1", "GET", key)
				wantDo(t, client, "OK", "SET", key, 2) // the rule is spent
			}
			if tc.fault == faultproxy.CutBefore {
				wantDo(t, direct, nil, "GET", key)
				wantNotYet(t, "Executed", trap.Executed())
			}
		}
	})
}

func TestDropReplyLosesWhatFollowsOnThatConnectionOnly(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		p := s.proxy(t)
		drop := p.Add(faultproxy.Rule{Match: isSet, Fault: faultproxy.DropReply})
		client, direct := s.dial(t, p.Addr()), s.dial(t, s.addr)
		send(t, client, "ECHO", "before")
		send(t, client, "SET", "a", 1)
		send(t, client, "SET", "b", 2)
		wantReply(t, client, "before")
		wait(t, "Hit", drop.Hit())
		wantSilence(t, s, client)
		wantDo(t, s.dial(t, p.Addr()), "PONG", "PING")

		last := p.Add(faultproxy.Rule{Match: faultproxy.Command("ECHO")})
		send(t, client, "ECHO", "after")
		wait(t, "Executed", last.Executed())
		wantSilence(t, s, client)
		wantDo(t, direct, "2", "GET", "b")
	})
}

func TestStallRequestIsExecutedAfterItsClientHasGone(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		p := s.proxy(t)
		late := p.Add(faultproxy.Rule{Match: isSet, Fault: faultproxy.StallRequest})
		client, direct := s.dial(t, p.Addr()), s.dial(t, s.addr)
		send(t, client, "SET", "k", "late")
		send(t, client, "SET", "k2", "behind")
		wait(t, "Hit", late.Hit())
		check.Must(t, client.Close())
		wait(t, "Gone", late.Gone())
		wantDo(t, direct, int64(0), "DEL", "k") // the clean-up of a caller after it gave up
		wantNotYet(t, "Executed", late.Executed())
		behind := p.Add(faultproxy.Rule{Match: faultproxy.Command("PING"), Fault: faultproxy.Watch})
		late.Release()
		wait(t, "Executed", late.Executed())
		wantDo(t, direct, "late", "GET", "k")
		wantNotYet(t, "Hit of a command never sent", behind.Hit())
	})
}

func TestPipelinedReplyIsFound(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		const n, chosen = 300, 123
		p := s.proxy(t)
		stall := p.Add(faultproxy.Rule{Match: faultproxy.Contains("value"), Nth: chosen, Fault: faultproxy.Stall})
		client := s.dial(t, p.Addr())
		go func() {
			for i := 1; i <= n; i++ {
				// replies of many shapes, each with a number of its own
				if i%2 == 0 {
					_ = client.Send("EVAL", "return {ARGV[1], {1, false, {ok='x\\ny'}}, 'a\\r\\nb', {}}", 0, fmt.Sprint("value", i))
				} else {
					_ = client.Send("ECHO", fmt.Sprint("value", i, "\r\n*3\r\n"))
				}
			}
		}()
		want := func(i int) {
			t.Helper()
			v, err := client.Receive()
			check.Must(t, err)
			if i%2 == 0 {
				v = v.Elems[0]
				v.Text += "\r\n*3\r\n"
			}
			check.Equal(t, fmt.Sprint("reply ", i), v.Text, fmt.Sprint("value", i, "\r\n*3\r\n"))
		}
		for i := 1; i < chosen; i++ {
			want(i)
		}
		wait(t, "Hit", stall.Hit())
		wantSilence(t, s, client)
		stall.Release()
		for i := chosen; i <= n; i++ {
			want(i)
		}
		check.Equal(t, "Count", p.Count(faultproxy.Any), n)
	})
}

func TestWatchCountsAndOrder(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s place) {
		p := s.proxy(t)
		first := p.Add(faultproxy.Rule{Match: isSet, Fault: faultproxy.CutBefore})
		second := p.Add(faultproxy.Rule{Match: isSet, Fault: faultproxy.CutBefore})
		every := p.Add(faultproxy.Rule{Match: faultproxy.Command("SET", "third"), Nth: 2, Every: true, Fault: faultproxy.Cut})
		for _, trap := range []*faultproxy.Trap{first, second} {
			wantNotYet(t, "Hit", trap.Hit())
			client := s.dial(t, p.Addr())
			send(t, client, "SET", "k", "v")
			wantClosed(t, client)
			wait(t, "Hit", trap.Hit())
		}
		wantDo(t, s.dial(t, p.Addr()), "OK", "SET", "k", "v")
		wantDo(t, s.dial(t, p.Addr()), "OK", "SET", "the third", "v")
		for range 2 {
			client := s.dial(t, p.Addr())
			send(t, client, "SET", "the third", "v")
			wantClosed(t, client)
			wait(t, "Hit", every.Hit())
		}
		every.Release()
		wantDo(t, s.dial(t, p.Addr()), "OK", "SET", "the third", "v")
		check.Equal(t, "Count", p.Count(faultproxy.Command("set", "third")), 4)
		if got := p.Requests()[0]; len(got) != 3 || got[1] != "k" {
			t.Errorf("the first request is %q", got)
		}
	})
}
