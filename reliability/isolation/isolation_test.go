package isolation

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
)

const (
	processes = 4
	name      = "shared"
	latency   = 250 * time.Microsecond // of a link, one way

	rest     = 5 * time.Millisecond // after an error
	warmUp   = 500 * time.Millisecond
	measured = 6 * time.Second
)

// The TTL of all holds in a row.
const (
	longTTL  = 30 * time.Second // the default of the strategies: no wait may depend on its end
	briefTTL = time.Second
)

// A fault's possible additions to the longest wait.
const (
	// timeToTry is a woken waiter's time for its attempt.
	timeToTry = 500 * time.Millisecond
	// missed is the time for which a missed wake-up keeps the lock from the other waiters.
	missed = 2500 * time.Millisecond
	// attemptTimeout is when a command without an answer is resent.
	attemptTimeout = briefTTL / 3
)

// bound is the permitted effect of a fault on the other processes.
type bound struct {
	delay time.Duration // added to the longest wait
	keeps float64       // part of the rate; 0: the strategy's
}

// row is a kind of fault.
type row struct {
	fault string
	do    func(*world)
	ttl   time.Duration // 0: longTTL
	bound bound
	// quorum: for a quorum only; holder: for the watchdog too.
	quorum, holder bool
	// idle: the faulty process uses the lock no more, or rarely.
	idle bool
	// why makes it a row of docs/reliability.md.
	why string
}

var rows = []row{
	{fault: "frozen while it waits", idle: true, do: whileWaiting((*process).freeze), bound: bound{delay: missed}},
	{fault: "frozen at its wake-up", do: atWakeUp((*process).freeze), bound: bound{delay: missed},
		why: "contract 12; once in 30 s"},
	{fault: "frozen while it holds", do: whileHolding((*process).freeze), ttl: briefTTL, holder: true,
		bound: bound{delay: briefTTL + missed},
		why:   "the lease ends by its TTL"},
	{fault: "killed while it waits", idle: true, do: whileWaiting((*process).kill)},
	{fault: "killed at its wake-up", do: atWakeUp((*process).kill),
		bound: bound{delay: missed}},
	{fault: "killed while it holds", do: whileHolding((*process).kill), ttl: briefTTL, holder: true,
		bound: bound{delay: briefTTL + timeToTry}},
	{fault: "host lost while it waits", idle: true, do: whileWaiting((*process).vanish), bound: bound{delay: missed}},
	{fault: "host lost while it holds", do: whileHolding((*process).vanish), ttl: briefTTL, holder: true,
		bound: bound{delay: briefTTL + missed}},

	{fault: "connections closed every 20 ms", do: again(20*time.Millisecond, (*faultproxy.Proxy).CutAll),
		bound: bound{delay: timeToTry}},
	{fault: "connections reset every 300 ms", do: again(300*time.Millisecond, (*faultproxy.Proxy).ResetAll),
		bound: bound{delay: timeToTry}},
	{fault: "half-open while it waits", do: whileWaiting(onLinks((*faultproxy.Proxy).HalfOpen)),
		bound: bound{delay: missed}},
	{fault: "half-open while it holds", do: whileHolding(onLinks((*faultproxy.Proxy).HalfOpen)),
		ttl: briefTTL, holder: true,
		bound: bound{delay: attemptTimeout + missed, keeps: 0.5},
		why:   "it misses its wake-ups, and polls as it is woken"},
	{fault: "round trip longer by 5 ms", do: each(onLinks(slower(5 * time.Millisecond)))},
	{fault: "round trip longer by 100 ms", do: each(onLinks(slower(100 * time.Millisecond))),
		bound: bound{delay: time.Second, keeps: 0.5},
		why:   "it holds until its release arrives"},
	{fault: "16 bytes a millisecond", do: each(onLinks(func(l *faultproxy.Proxy) { l.Slow(time.Millisecond) }))},
	{fault: "link frozen for 1 s of 2 s", do: flapping,
		bound: bound{delay: time.Second + missed, keeps: 0.4},
		why:   "it holds until its release arrives"},
	{fault: "every 20th reply lost", do: everyCommand(20, faultproxy.DropReply), ttl: briefTTL,
		bound: bound{delay: attemptTimeout + missed, keeps: 0.7},
		why:   "an acquire is resent after `AttemptTimeout`"},
	{fault: "connection closed at every 20th reply", do: everyCommand(20, faultproxy.Cut),
		bound: bound{delay: timeToTry}},
	{fault: "connection closed before every 20th command", do: everyCommand(20, faultproxy.CutBefore),
		bound: bound{delay: timeToTry}},
	{fault: "messages lost", idle: true, do: each(filtered(faultproxy.Messages(-1))), bound: bound{delay: missed}},
	{fault: "messages lost, and it polls as it is woken", do: each(filtered(faultproxy.Messages(-1))), ttl: briefTTL,
		bound: bound{delay: missed, keeps: 0.5},
		why:   "a poll within 500 ms of each lost wake-up hides the loss"},
	{fault: "messages late by 3 s", idle: true, do: each(filtered(faultproxy.Messages(3 * time.Second))),
		bound: bound{delay: missed}},
	{fault: "only pings answered, while it waits", do: whileWaiting(filtered(pingsOnly)), ttl: briefTTL,
		bound: bound{delay: briefTTL + missed, keeps: 0.7},
		why:   "it acquires and does not learn of it"},
	{fault: "only pings answered, while it holds", do: whileHolding(filtered(pingsOnly)), ttl: briefTTL,
		bound: bound{delay: briefTTL + missed, keeps: 0.7}},

	{fault: "callbacks of waits block", idle: true, do: each(waitsBlock), bound: bound{delay: missed}},
	{fault: "callbacks of holds block", do: each(holdsBlock), ttl: briefTTL, holder: true,
		bound: bound{delay: briefTTL + missed, keeps: 0.6},
		why:   "each caller keeps its hold for the TTL"},
	{fault: "hopeless deadlines", do: each(func(p *process) { p.hopeless.Store(true) }),
		bound: bound{delay: timeToTry}},
	{fault: "driver closed while it waits", idle: true, do: whileWaiting((*process).closeDrivers)},
	{fault: "driver closed while it holds", do: whileHolding((*process).closeDrivers), ttl: briefTTL, holder: true,
		bound: bound{delay: briefTTL + timeToTry}},
	{fault: "client closed while it waits", idle: true, do: whileWaiting((*process).closeClients)},
	{fault: "client closed while it holds", do: whileHolding((*process).closeClients), ttl: briefTTL, holder: true,
		bound: bound{delay: briefTTL + timeToTry}},

	{fault: "clock of a node stepped back by 10 s", do: func(w *world) { w.nodes[0].stepBack(10 * time.Second) },
		bound: bound{delay: missed, keeps: 0.6},
		why:   "waiters have no place until they poll"},
	{fault: "scripts of a node lost every 100 ms", do: func(w *world) {
		w.again(100*time.Millisecond, w.nodes[0].forgetScripts)
	}},

	{fault: "node frozen", quorum: true, do: toNode((*faultproxy.Proxy).Freeze),
		bound: bound{delay: time.Second}},
	{fault: "node refuses connections", quorum: true, do: toNode(refuse),
		bound: bound{delay: time.Second}},
	{fault: "node refuses commands", quorum: true, do: func(w *world) { w.nodes[0].refuse() },
		bound: bound{delay: time.Second}},
	{fault: "round trip to a node longer by 100 ms", quorum: true, do: toNode(slower(100 * time.Millisecond)),
		bound: bound{delay: time.Second}},
	{fault: "node restarted every 2 s", quorum: true, do: func(w *world) {
		w.again(2*time.Second, func() {
			w.nodes[0].forgetScripts()
			toNode((*faultproxy.Proxy).CutAll)(w)
		})
	},
		bound: bound{delay: time.Second}},
}

// strategies returns the strategies of the row with a number: one, another one for each row. If
// HOLDFAST_TEST=full it returns all of the row.
func (r row) strategies(number int) []strategy {
	of := slices.DeleteFunc(slices.Clone(strategies), func(s strategy) bool {
		return r.quorum && s.nodes == 1 || s.watched && !r.holder
	})
	if effort.Full() {
		return of
	}
	if !r.quorum {
		of = of[:len(of)-1] // a quorum takes as long as all others
	}
	return of[number%len(of):][:1]
}

// Each kind of fault happens to one process, or to one node. The other processes keep most of their
// rate, and none of their waits takes longer than the row allows.
func TestIsolation(t *testing.T) {
	t.Parallel()
	undisturbed := map[string]result{}
	for _, s := range strategies {
		r := run(t, s, longTTL, func(*world) {})
		t.Logf("%s: %d holds, the longest wait is %v", s.name, r.holds, r.longest)
		if r.longest > s.longest {
			t.Errorf("%s: a wait takes %v, want %v", s.name, r.longest, s.longest)
		}
		undisturbed[s.name] = r
	}
	for i, row := range rows {
		if i%effort.Of(4, 1, 1) > 0 {
			continue
		}
		for _, s := range row.strategies(i) {
			t.Run(fmt.Sprintf("%s/%s", row.fault, s.name), func(t *testing.T) {
				t.Parallel()
				row.check(t, s, undisturbed[s.name])
			})
		}
	}
}

// check runs a row, and compares with a run without its fault.
func (r row) check(t *testing.T, s strategy, without result) {
	t.Helper()
	with := run(t, s, cmp.Or(r.ttl, longTTL), r.do)
	rate, keeps := float64(with.holds)/float64(without.holds), cmp.Or(r.bound.keeps, s.keeps)
	if r.idle {
		keeps = s.gains
	}
	t.Logf("the others keep %.2f of their rate; the longest wait is %v", rate, with.longest)
	if rate < keeps {
		t.Errorf("the others keep %.2f of their rate, want %.2f", rate, keeps)
	}
	if most := s.longest + r.bound.delay; with.longest > most {
		t.Errorf("a wait takes %v, want %v", with.longest, most)
	}
	for _, err := range with.errs {
		t.Errorf("another process: %v", err)
	}
}

// run returns the healthy processes' work during a fault of the first process, or of a node.
func run(t *testing.T, s strategy, ttl time.Duration, happen func(*world)) (r result) {
	t.Helper()
	clients.Bubble(t, func(t *testing.T) { r = newWorld(t, s, ttl).run(happen) })
	return r
}
