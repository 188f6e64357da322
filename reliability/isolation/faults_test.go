package isolation

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// freeze stops a process with its connections open, as SIGSTOP does.
func (p *process) freeze() {
	p.frozen.Store(true)
	for _, l := range p.links {
		l.Freeze()
	}
}

// kill ends a process, as SIGKILL does: its connections are closed.
func (p *process) kill() {
	p.frozen.Store(true)
	onLinks(refuse)(p)
}

// vanish ends a process with its host: nobody closes its connections.
func (p *process) vanish() {
	p.frozen.Store(true)
	for _, l := range p.links {
		l.Refuse()
		l.HalfOpen()
	}
}

func (p *process) closeDrivers() {
	for _, drv := range p.drivers {
		p.world.faults.Go(func() { _ = drv.Close() })
	}
}

func (p *process) closeClients() {
	for _, closeClient := range p.closes {
		p.world.faults.Go(closeClient)
	}
}

// each lets a fault happen to a process at once.
func each(f func(*process)) func(*world) { return func(w *world) { f(w.processes[0]) } }

// whileHolding lets a fault happen to a process as soon as it holds.
func whileHolding(f func(*process)) func(*world) {
	return func(w *world) {
		p := w.processes[0]
		do := func() { f(p) }
		p.holding.Store(&do)
	}
}

// whileWaiting lets a fault happen to a process as soon as the others hold every permit.
func whileWaiting(f func(*process)) func(*world) {
	return func(w *world) {
		w.faults.Go(func() {
			for w.pause(time.Millisecond) {
				if w.full() {
					f(w.processes[0])
					return
				}
			}
		})
	}
}

// atWakeUp lets a fault happen to a process once a release has woken it.
func atWakeUp(f func(*process)) func(*world) {
	return func(w *world) {
		p := w.processes[0]
		p.trace.Store(&locktrace.Trace{Woken: func(_ context.Context, i locktrace.WokenInfo) {
			if i.By == locktrace.ByRelease && p.holds.Load() == 0 {
				f(p)
				p.pass()
			}
		}})
	}
}

// onLinks returns a fault of all links of a process.
func onLinks(f func(*faultproxy.Proxy)) func(*process) {
	return func(p *process) {
		for _, l := range p.links {
			f(l)
		}
	}
}

// toNode returns a fault of the links of all processes to a node.
func toNode(f func(*faultproxy.Proxy)) func(*world) {
	return func(w *world) {
		for _, p := range w.processes {
			f(p.links[0])
		}
	}
}

// slower makes each round trip longer.
func slower(by time.Duration) func(*faultproxy.Proxy) {
	return func(l *faultproxy.Proxy) { l.Latency(by) }
}

func refuse(l *faultproxy.Proxy) {
	l.Refuse()
	l.CutAll()
}

// again returns a fault that happens to the links of a process again and again.
func again(d time.Duration, f func(*faultproxy.Proxy)) func(*world) {
	return func(w *world) { w.again(d, func() { onLinks(f)(w.processes[0]) }) }
}

// everyCommand returns a fault of every nth command of a process.
func everyCommand(nth int, f faultproxy.Fault) func(*world) {
	return each(onLinks(func(l *faultproxy.Proxy) {
		count := 0
		l.Add(faultproxy.Rule{Every: true, Fault: f, Match: func([]string) bool {
			count++
			return count%nth == 0
		}})
	}))
}

// filtered returns a fault of all replies and messages to a process.
func filtered(f faultproxy.Filter) func(*process) {
	return onLinks(func(l *faultproxy.Proxy) { l.Filter(f) })
}

// pingsOnly loses all but the answers to PING.
func pingsOnly(v resp.Value) time.Duration {
	if v.Text == "PONG" || len(v.Elems) > 0 && v.Elems[0].Text == "pong" {
		return 0
	}
	return -1
}

// flapping freezes the links of a process every other second.
func flapping(w *world) {
	freeze, thaw := onLinks((*faultproxy.Proxy).Freeze), onLinks((*faultproxy.Proxy).Thaw)
	frozen := false
	w.again(time.Second, func() {
		if frozen = !frozen; frozen {
			freeze(w.processes[0])
		} else {
			thaw(w.processes[0])
		}
	})
}

// waitsBlock makes the callbacks of waits block until the end.
func waitsBlock(p *process) {
	p.trace.Store(&locktrace.Trace{
		Waiting: func(context.Context, locktrace.WaitingInfo) { <-p.world.ended },
		Woken:   func(context.Context, locktrace.WokenInfo) { <-p.world.ended },
	})
}

// holdsBlock makes the callbacks of holds block until the end.
func holdsBlock(p *process) {
	p.trace.Store(&locktrace.Trace{
		Acquired: func(context.Context, locktrace.AcquiredInfo) { <-p.world.ended },
		Released: func(context.Context, locktrace.ReleasedInfo) { <-p.world.ended },
	})
}
