package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// togetherCases are about concurrent calls: an adapter may send them together.
var togetherCases = []testCase{
	{
		name: "calls at the same time get their own answers", on: suite.AllKinds,
		why: "a reply that reaches another goroutine gives a lock to one that does not hold it",
		run: callsGetTheirOwnAnswers,
	},
	{
		name: "a caller that leaves fails nobody", on: suite.OneAddress,
		why: "calls that travel together share a connection and no context: an impatient caller must not fail the locks of others",
		run: callerThatLeavesFailsNobody,
	},
	{
		name: "calls at the same time are sent once", on: suite.OneAddress,
		why: "a connection that breaks under many calls leaves the outcome of each unknown, and a resend may run any of them twice",
		run: callsAreSentOnce,
	},
	{
		name: "calls at the same time send unknown scripts once", on: suite.WithoutSentinel, own: true,
		why: "NOSCRIPT comes for some of the calls that travel together and not for others; none may run twice",
		run: unknownScriptsAreSentOnce,
	},
	{
		name: "what many callers left unsent is never sent", on: suite.OneAddress, own: true,
		why: "nobody cleans up after ErrNotSent: a command that leaves a queue after its caller locks what nobody holds",
		run: unsentCallsAreNeverSent,
	},
	{
		name: "silent connections delay only what is on them", on: suite.OnlyMemory,
		why: "connections may go silent while the server is well: a caller may lose one call to each, and its other calls must be answered",
		run: silentConnectionsDelayFew,
	},
	{
		name: "callers that have left keep no connection", on: suite.OnlyMemory,
		why: "if a silent connection is kept for callers that have left, none is free when the server answers again",
		run: leftCallersKeepNoConnection,
	},
}

// begin calls f in n goroutines, started together.
func (t *caseT) begin(n int, f func(i int)) *sync.WaitGroup {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	return &all
}

// trusted makes calls until the adapter trusts its connections: rueidis' is careful at first.
func (t *caseT) trusted(drv driver.Driver) {
	t.Helper()
	key := t.Key()
	for range 100 {
		t.OK(setNX.send(t.Ctx, drv, key), "a call")
	}
}

// keys returns n keys.
func (t *caseT) keys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = t.Key()
	}
	return keys
}

// nth returns each nth of keys.
func nth(keys []string, n int) (some []string) {
	for i := n - 1; i < len(keys); i += n {
		some = append(some, keys[i])
	}
	return some
}

// about matches a request about one of keys.
func about(keys []string) faultproxy.Match {
	return func(args []string) bool {
		return slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(keys, arg) })
	}
}

// ranAll returns how often commands were executed, by the values of their keys. In a cluster the keys
// must share a slot.
func (t *caseT) ranAll(keys []string) []int {
	t.Helper()
	words := []any{"MGET"}
	for _, key := range keys {
		words = append(words, key)
	}
	values, _ := t.Do(keys[0], words...).([]any)
	if len(values) != len(keys) {
		t.Fatalf("MGET of %d keys replied %d values", len(keys), len(values))
	}
	ran := make([]int, len(keys))
	for i, v := range values {
		switch v {
		case nil:
		case "v": // of setNX
			ran[i] = 1
		default:
			_, err := fmt.Sscan(fmt.Sprint(v), &ran[i])
			t.OK(err, "the counter at %s", keys[i])
		}
	}
	return ran
}

// commandOf returns the command of caller i: half of them send one, half the other.
func commandOf(i int) command { return commands[i%len(commands)] }

// answer is the result of a call.
type answer struct {
	err  error
	took time.Duration
}

// sendAll has callers send at the same time, each about its key, until the context of each ends.
func (t *caseT) sendAll(drv driver.Driver, keys []string, newContext func(i int) (context.Context, func())) (answers []answer, calls *sync.WaitGroup) {
	answers = make([]answer, len(keys))
	return answers, t.begin(len(keys), func(i int) {
		ctx, stop := newContext(i)
		defer stop()
		began := time.Now()
		err := commandOf(i).send(ctx, drv, keys[i])
		answers[i] = answer{err, time.Since(began)}
	})
}

// consistent demands that no command was sent or executed twice, and that none was executed whose
// answer is ErrNotSent. A client may have to send something in its place.
func (t *caseT) consistent(p *faultproxy.Proxy, keys []string, answers []answer) {
	t.Helper()
	ran := t.ranAll(keys)
	for i, a := range answers {
		what, sent := fmt.Sprintf("call %d, a %s", i, commandOf(i).name), p.Sent(keys[i])
		var se *driver.ServerError
		switch {
		case sent > 1 || ran[i] > 1:
			t.Fatalf("%s: sent %d times, executed %d times", what, sent, ran[i])
		case errors.As(a.err, &se):
			t.Fatalf("%s: got a ServerError %q", what, se.Text)
		case a.err == nil && ran[i] != 1:
			t.Fatalf("%s: no error, although it was executed %d times", what, ran[i])
		case errors.Is(a.err, driver.ErrNotSent) && ran[i] > 0:
			t.Fatalf("%s: %v, although it was executed", what, a.err)
		}
	}
}

// callsGetTheirOwnAnswers makes calls of different kinds with different answers.
func callsGetTheirOwnAnswers(t *caseT) {
	const calls = 105
	drv := t.Driver()
	echo, raising := script(`return {KEYS[1], ARGV[1]}`), script(`error('raised <' .. ARGV[1] .. '>')`)
	refusing := script(`return redis.error_reply('MYCODE of ' .. ARGV[1])`)
	get := script(`return redis.pcall('GET', KEYS[1])`)
	kinds := []func(key, arg string){
		func(key, arg string) {
			if err := wantEcho(t, drv, echo, key, arg); err != nil {
				t.Errorf("Eval: %v", err)
			}
		},
		func(key, arg string) {
			if set, err := drv.SetNX(t.Ctx, key, arg, time.Minute); err != nil || !set {
				t.Errorf("SetNX of a free key: %v, %v", set, err)
			}
		},
		func(key, _ string) {
			if set, err := drv.SetNX(t.Ctx, key, "ours", time.Minute); err != nil || set {
				t.Errorf("SetNX of a taken key: %v, %v", set, err)
			}
		},
		func(key, arg string) {
			_, err := drv.Eval(t.Ctx, refusing, []string{key}, []string{arg})
			t.refused(err, "MYCODE of "+arg, "a script that refuses")
		},
		func(key, arg string) {
			_, err := drv.Eval(t.Ctx, raising, []string{key}, []string{arg})
			if driver.CodeOf(err) == "" || !strings.Contains(err.Error(), "raised <"+arg+">") {
				t.Errorf("a script that raises an error: got %v, want a ServerError with <%s>", err, arg)
			}
		},
		func(key, _ string) {
			if _, err := drv.Eval(t.Ctx, get, []string{key}, nil); driver.CodeOf(err) != "WRONGTYPE" {
				t.Errorf("GET of a list: got %v, want WRONGTYPE", err)
			}
		},
		func(key, arg string) {
			reply, err := drv.Eval(t.Ctx, get, []string{key}, nil)
			if n, _ := reply.Text(0); err != nil || n != arg {
				t.Errorf("GET of a number: got %q, %v; want %q", n, err, arg)
			}
		},
	}
	for round := range 2 { // scripts unknown to the server, then known
		keys := t.keys(calls)
		args := make([]string, calls)
		for i, key := range keys {
			args[i] = fmt.Sprint(round*calls + i)
			switch i % len(kinds) {
			case 2:
				t.Do(key, "SET", key, "theirs", "PX", 60_000)
			case 5:
				t.Do(key, "RPUSH", key, "a")
			case 6:
				t.Do(key, "SET", key, args[i], "PX", 60_000)
			}
		}
		t.Promptly("the calls", t.begin(calls, func(i int) { kinds[i%len(kinds)](keys[i], args[i]) }).Wait)
		for i, key := range keys {
			if i%len(kinds) != 1 {
				continue
			}
			if v, _ := t.Stored(key); v != args[i] {
				t.Errorf("SetNX stored %q, want %q", v, args[i])
			}
		}
	}
}

// callerThatLeavesFailsNobody holds back the replies to some callers until they have left.
func callerThatLeavesFailsNobody(t *caseT) {
	const calls, every = 60, 6
	const longer = 2500 * time.Millisecond // longer than an adapter waits for an absent caller's reply
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	for want, newContext := range endings {
		if !t.endsHere(want) {
			continue
		}
		for what, fault := range map[string]faultproxy.Fault{"reply": faultproxy.Stall, "request": faultproxy.StallRequest} {
			keys := t.keys(calls)
			left := func(i int) bool { return i%every == every-1 }
			trap := p.Add(faultproxy.Rule{Match: about(nth(keys, every)), Every: true, Fault: fault})
			var leaving sync.WaitGroup
			leaving.Add(calls / every)
			answers, all := t.sendAll(drv, keys, func(i int) (context.Context, func()) {
				if !left(i) {
					return t.Ctx, func() {}
				}
				ctx, stop := newContext(t, trap.Hit())
				return ctx, func() { stop(); leaving.Done() }
			})
			t.Event(trap.Hit(), "the "+what+" is held back")
			t.Promptly("the callers that leave", leaving.Wait)
			if t.InFakeTime() {
				t.Pause(longer)
			}
			trap.Release()
			t.Promptly("the others", all.Wait)
			for i, a := range answers {
				switch call := fmt.Sprintf("%s held back, %v: call %d", what, want, i); {
				case !left(i):
					if a.err != nil {
						t.Errorf("%s, which nobody cancelled: %v", call, a.err)
					}
					t.SentOnce(p, keys[i], call)
				case a.err != nil:
					t.Is(a.err, want, "%s, whose caller has left", call)
				}
			}
			if t.InFakeTime() {
				t.Pause(silence)
			}
			t.consistent(p, keys, answers)
		}
	}
}

// callsAreSentOnce breaks connections under calls, and leaves time for a resend.
func callsAreSentOnce(t *caseT) {
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	faults := map[string]faultproxy.Fault{"cut": faultproxy.Cut, "cut before": faultproxy.CutBefore}
	if t.InFakeTime() {
		faults["lost reply"] = faultproxy.DropReply
	}
	for what, fault := range faults {
		keys := t.keys(100)
		t.consistent(p, keys, t.sendAndBreak(p, drv, keys, what, fault))
		t.Eventually("a call works again", func() bool { return eval.send(t.Ctx, drv, t.Key()) == nil })
	}
}

// sendAndBreak has callers send at the same time, each about its key, and p disturb each tenth
// command. It demands that their outcome is unknown.
func (t *caseT) sendAndBreak(
	p *faultproxy.Proxy, drv driver.Driver, keys []string, what string, fault faultproxy.Fault,
) []answer {
	t.Helper()
	const every = 10
	trap := p.Add(faultproxy.Rule{Match: about(nth(keys, every)), Every: true, Fault: fault})
	ctx, cancel := context.WithCancel(t.Ctx)
	defer cancel()
	answers, all := t.sendAll(drv, keys, func(int) (context.Context, func()) { return ctx, func() {} })
	t.Event(trap.Hit(), what)
	if t.InFakeTime() {
		t.Pause(silence)
		cancel()
	}
	t.Promptly("the calls", all.Wait)
	for i, a := range answers {
		if i%every == every-1 && p.Sent(keys[i]) > 0 {
			t.unknown(a.err, fmt.Sprintf("%s, call %d", what, i))
		}
	}
	trap.Release()
	return answers
}

// unknownScriptsAreSentOnce makes calls of two scripts. The server knows one of them at first.
func unknownScriptsAreSentOnce(t *caseT) {
	const calls, every = 60, 3
	drv, keys := t.Driver(), t.keys(calls)
	known := script(`return redis.call('INCRBY', KEYS[1], 1)`)
	t.OK(t.Server.EveryNode(t.Ctx, "SCRIPT", "FLUSH"), "SCRIPT FLUSH")
	t.OK(t.Server.EveryNode(t.Ctx, "SCRIPT", "LOAD", known.Source()), "SCRIPT LOAD")
	for round := range int64(2) {
		t.Promptly("the calls", t.begin(calls, func(i int) {
			s := countScript
			if i%every == 0 {
				s = known
			}
			reply, err := drv.Eval(t.Ctx, s, keys[i:i+1], nil)
			if err != nil {
				t.Errorf("round %d, call %d: %v", round+1, i, err)
				return
			}
			if n, err := reply.Int(0); err != nil || n != round+1 {
				t.Errorf("round %d: call %d has run %d times (%v)", round+1, i, n, err)
			}
		}).Wait)
	}
}

// unsentCallsAreNeverSent makes many impatient calls to a silent server.
func unsentCallsAreNeverSent(t *caseT) {
	const calls = 200
	patience := func(i int) time.Duration { return time.Duration(i+1) * 250 * time.Microsecond }
	p, drv := t.Proxied()
	for _, trouble := range []struct {
		name       string
		begin, end func()
	}{
		{"a frozen server", p.Freeze, p.Thaw},
		{"a server that refuses", func() { p.Refuse(); p.CutAll() }, func() { t.OK(p.Accept(), "take connections again") }},
		{"a frozen server that is dialed", func() { p.Freeze(); p.CutAll() }, p.Thaw},
	} {
		t.Eventually("a call works", func() bool { return eval.send(t.Ctx, drv, t.Key()) == nil })
		t.trusted(drv)
		trouble.begin()
		keys := t.keys(calls)
		parent, leave := context.WithCancel(t.Ctx)
		var begun atomic.Int32
		answers, all := t.sendAll(drv, keys, func(i int) (context.Context, func()) {
			begun.Add(1)
			if !t.InFakeTime() {
				return parent, func() {}
			}
			bound := bounded.New(parent, patience(i))
			return bound, bound.Stop
		})
		t.Eventually("all callers have begun", func() bool { return begun.Load() == calls })
		if !t.InFakeTime() {
			leave()
		}
		t.Promptly("the callers at "+trouble.name, all.Wait)
		leave()
		trouble.end()
		if t.InFakeTime() {
			t.Pause(silence)
		}
		t.Eventually("a call works again", func() bool { return eval.send(t.Ctx, drv, t.Key()) == nil })
		t.consistent(p, keys, answers)
		for i, a := range answers {
			if t.InFakeTime() && a.took > patience(i)+latency {
				t.Fatalf("%s: call %d returned after %v, want %v", trouble.name, i, a.took, patience(i))
			}
		}
	}
}

// silentConnectionsDelayFew withholds the replies of one connection after the other from callers in
// a loop.
func silentConnectionsDelayFew(t *caseT) {
	const (
		callers, silent, patience, prompt = 40, 4, 200 * time.Millisecond, 100 * time.Millisecond
		stopped, pause                    = 2500 * time.Millisecond, 100 * time.Millisecond
	)
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	t.trusted(drv)
	keys := t.keys(callers)
	var traps []*faultproxy.Trap
	for i := range silent { // each at a call among the calls of others
		nth := (2+2*i)*callers + callers*3/4
		traps = append(traps, p.Add(faultproxy.Rule{Match: about(keys), Nth: nth, Fault: faultproxy.Stall}))
	}
	var over atomic.Bool
	slow := make([][]time.Duration, callers) // when the slow calls of each caller began
	began := time.Now()
	all := t.begin(callers, func(i int) {
		for n := 0; !over.Load(); n++ {
			ctx, start := bounded.New(t.Ctx, patience), time.Now()
			err := commandOf(i).send(ctx, drv, keys[i])
			ctx.Stop()
			switch took := time.Since(start); {
			case took > patience+latency:
				t.Errorf("caller %d, call %d: it returned after %v, want %v", i, n, took, patience)
			case took > prompt:
				slow[i] = append(slow[i], start.Sub(began))
			case err != nil:
				t.Errorf("caller %d, call %d: %v", i, n, err)
			}
			t.Pause(pause)
		}
	})
	t.Event(traps[0].Hit(), "the replies of a connection stop")
	t.Pause(stopped)
	hit := 0
	for _, trap := range traps {
		if suite.Happened(trap) {
			hit++
		}
		trap.Release()
	}
	t.Pause(stopped / 8)
	over.Store(true)
	t.Promptly("the callers", all.Wait)
	for i, s := range slow {
		if len(s) > silent {
			t.Fatalf("caller %d: its calls after %v took longer than %v, want %d at most", i, s, prompt, silent)
		}
	}
	if hit < silent {
		t.Errorf("the replies of %d connections stopped, want %d", hit, silent)
	}
}

// leftCallersKeepNoConnection loses all replies to callers without a deadline, and cancels them.
func leftCallersKeepNoConnection(t *caseT) {
	const (
		waves, calls = 60, 16           // one of them after the other: more than adapters have connections
		most         = 90 * time.Second // a client may be unable to close a connection in use
	)
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	t.trusted(drv)
	keys := t.keys(calls)
	trap := p.Add(faultproxy.Rule{Match: about(keys), Every: true, Fault: faultproxy.DropReply})
	ctx, leave := context.WithCancel(context.WithoutCancel(t.Ctx))
	var all [waves]*sync.WaitGroup
	for i := range all {
		_, all[i] = t.sendAll(drv, keys, func(int) (context.Context, func()) { return ctx, func() {} })
		t.Pause(10 * latency)
	}
	t.Event(trap.Hit(), "replies are lost")
	leave()
	for _, wave := range all {
		t.Promptly("the callers", wave.Wait)
	}
	trap.Release()
	answered := func() bool {
		ctx, stop := context.WithTimeout(t.Ctx, time.Second)
		defer stop()
		return eval.send(ctx, drv, t.Key()) == nil
	}
	for began := time.Now(); !answered(); {
		if time.Since(began) > most {
			t.Fatalf("no call is answered in %v after all callers have left", most)
		}
		t.Pause(suite.PollEvery)
	}
}
