package simulate

import (
	"time"

	"github.com/holdfast-go/holdfast/reliability/history"
)

// chaos injects the plan's faults until stop is closed. It returns how many it injected.
func (w *world) chaos(r *history.Recorder, stop <-chan struct{}) (happened int) {
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for _, f := range w.plan.Faults {
		timer.Reset(time.Until(start.Add(f.At)))
		select {
		case <-timer.C:
		case <-stop:
			return happened
		}
		w.happen(f, r)
		happened++
	}
	return happened
}

func (w *world) happen(f Fault, r *history.Recorder) {
	switch f.Kind {
	case DropReplies:
		w.each(f, func(l *link) { l.lose(f.N, f.For) })
	case Garble:
		w.each(f, func(l *link) { l.spoil(f.N) })
	case Cut:
		w.each(f, func(l *link) { l.cut(f.Lose) })
	case HalfOpen:
		w.each(f, func(l *link) { l.forget(f.For) })
	case Freeze:
		w.each(f, func(l *link) { l.hold(f.For, true, true, false) })
	case Delay:
		w.each(f, func(l *link) { l.delay(f.By, f.For) })
	case Overtake:
		w.each(f, func(l *link) { l.lag(f.By, f.For) })
	case Pause:
		w.clients[f.Client].paused.Extend(f.For)
		w.each(f, func(l *link) { l.hold(f.For, false, true, true) })
	case Stall:
		w.each(f, func(l *link) { l.hold(f.For, true, false, false) })
	case Clog:
		w.clients[f.Client].log.blocked.Extend(f.For)
	default:
		w.strike(f, w.servers[f.Server], r)
	}
}

// strike injects a fault of a server.
func (w *world) strike(f Fault, s *server, r *history.Recorder) {
	switch f.Kind {
	case Refuse:
		s.refuse(f.Text)
		time.AfterFunc(f.For, func() { s.refuse("") })
	case Forget:
		s.forgetScripts()
	case StepClock:
		s.step(f.By)
	case Leap:
		s.step(f.By)
		w.loss(r)
	case Crash, Exile:
		s.stop(f.For)
		s.forgetScripts()
		w.each(f, func(l *link) { l.cut(f.Lose) })
		if f.Kind == Exile {
			s.empty()
		}
	case Wipe:
		s.empty()
		w.loss(r)
	}
}

// loss records the loss of a server's state just now.
func (w *world) loss(r *history.Recorder) { r.Lose("", r.Now(), r.Now()) }
