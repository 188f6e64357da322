package simulate

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/reliability/history"
)

// worker is one goroutine of a client.
type worker struct {
	*world
	plan   Worker
	client *client
	locker locker.Locker
	calls  *history.Client
	store  *history.Store
	passed *passedOn
}

// run makes the turns, one after the other, until the time is up.
func (w *worker) run(until time.Time) {
	for _, t := range w.plan.Turns {
		w.client.sleep(t.Pause)
		if time.Now().After(until) {
			return
		}
		w.turn(t)
	}
}

// looks is how often a holder looks whether it holds, between two steps.
const looks = 3

func (w *worker) turn(t Turn) {
	name := w.world.plan.Names[t.Name]
	req := locker.Request{Name: name.Name, Fenced: name.Fenced, TTL: t.TTL, Owner: t.Owner, NoWait: t.NoWait, MaxWait: t.MaxWait}
	if t.Shared {
		req.Mode = locker.Shared
	}
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if w.plan.Logs {
		ctx = locktrace.With(ctx, w.client.log.trace())
	}
	switch {
	case t.MaxWait > 0:
	case t.Cancel:
		ctx, cancel = context.WithCancel(ctx)
		defer time.AfterFunc(t.Timeout, cancel).Stop()
	default:
		ctx, cancel = context.WithTimeout(ctx, t.Timeout)
	}
	hold, err := w.obtain(ctx, t, req)
	cancel()
	if err != nil {
		return
	}
	w.client.sleep(0)
	for _, s := range t.Steps {
		for range looks {
			hold.Held()
			w.client.sleep(s.Pause / looks)
		}
		hold = w.step(hold, s)
	}
	w.finish(hold, t.End)
}

// step returns the hold to go on with.
func (w *worker) step(hold *history.Hold, s Step) *history.Hold {
	ctx := context.Background()
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Timeout)
		defer cancel()
	}
	switch s.Do { // their errors are in the history
	case Look:
		hold.Held()
	case Write:
		_ = hold.Write(w.store.Accept)
	case Renew:
		_ = hold.Renew(ctx, s.TTL)
	case Downgrade:
		_ = hold.Downgrade(ctx)
	case Upgrade:
		_ = hold.Upgrade(ctx)
	case Nest:
		w.turn(*s.Inner)
	case Pass:
		w.passed.put(hold)
	case Resume:
		return w.moveOn(ctx, hold, s)
	}
	return hold
}

func (w *worker) finish(hold *history.Hold, end End) {
	ctx := context.Background()
	switch end {
	case Abandon:
		hold.Abandon()
		return
	case Overstay:
		<-hold.Done()
	case Hasty:
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel()
	}
	_ = hold.Release(ctx)
}
