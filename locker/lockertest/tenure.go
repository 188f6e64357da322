package lockertest

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// tenures is the state of one name. Locker.mu guards it, and the holds in it.
type tenures struct {
	holds []*hold   // the oldest first; several only if all are shared, or have permits
	fence int64     // the last fencing token
	bar   time.Time // since when a waiting writer keeps new readers out

	places []*place // of waiters, one for each process
}

// writerTurn is how long at a time a waiting writer keeps new readers out: the default of
// strategies/rwhash.
const writerTurn = 5 * time.Second

// barsReaders returns for how much longer a waiting writer keeps new readers out.
func (t *tenures) barsReaders() time.Duration {
	now := time.Now()
	if t.firstPlace("") == nil {
		return 0
	}
	if !now.Before(t.bar.Add(2 * writerTurn)) {
		t.bar = now
	}
	return max(0, writerTurn-now.Sub(t.bar))
}

// of returns the tenures of name. The mutex is held.
func (l *Locker) of(name string) *tenures {
	t := l.names[name]
	if t == nil {
		if l.names == nil {
			l.names = map[string]*tenures{}
		}
		t = &tenures{}
		l.names[name] = t
	}
	return t
}

// live drops the holds whose lease has ended, and returns the others.
func (t *tenures) live() []*hold {
	now := time.Now()
	t.holds = slices.DeleteFunc(t.holds, func(h *hold) bool { return !now.Before(h.until) })
	return t.holds
}

// find returns the live hold with a token, or nil if there is none or it was released.
func (t *tenures) find(token string) *hold {
	for _, h := range t.live() {
		if h.token == token && !h.released {
			return h
		}
	}
	return nil
}

// mint returns the next fencing token.
func (t *tenures) mint() int64 {
	t.fence++
	return t.fence
}

// used returns how many permits the live holds have.
func (t *tenures) used() (n int) {
	for _, h := range t.live() {
		n += h.permits
	}
	return n
}

// firstToEnd and lastToEnd return one of holds. There must be at least one.
func firstToEnd(holds []*hold) *hold {
	return slices.MinFunc(holds, func(a, b *hold) int { return a.until.Compare(b.until) })
}

func lastToEnd(holds []*hold) *hold {
	return slices.MaxFunc(holds, func(a, b *hold) int { return a.until.Compare(b.until) })
}

// state returns the State for Inspect. The mutex is held.
func (l *Locker) state(name string) locker.State {
	t := l.of(name)
	holds := t.live()
	state := locker.State{Permits: l.permits, Free: max(0, l.permits-t.used()), Waiters: t.waiters()}
	if state.Waiters == 0 && len(l.channels[l.channel(name).Name()]) > 0 {
		state.Waiters = 1 // without a place
	}
	if len(holds) == 0 {
		return state
	}
	last := lastToEnd(holds)
	shown := holds[0]
	if l.permits > 0 {
		shown = last
	} else {
		state.Fence = shown.fence
	}
	state.Held, state.Owner, state.Note, state.Mode, state.Left = true, shown.owner, shown.note, shown.mode,
		time.Until(last.until)
	for _, h := range holds {
		if !h.released {
			state.Holds++
		}
	}
	return state
}

// refusal returns the error of an attempt that found the name held by shown until the time end.
func refusal(shown *hold, end time.Time) *locker.ContentionError {
	left := time.Until(end)
	return &locker.ContentionError{
		Name: shown.name, Owner: shown.owner, Note: shown.note, Left: left, Released: shown.released,
		Hint: lease.Hint{RetryAfter: left},
	}
}

// refuse returns the refusal of req, or nil if nothing is in its way.
func (l *Locker) refuse(ctx context.Context, req locker.Request) error {
	var held *locker.ContentionError
	if req.Mode == locker.Shared {
		held = l.refuseReader(req)
	} else {
		held = l.refuseWriter(ctx, req)
	}
	if held == nil {
		return nil
	}
	if w := waiting(ctx, req); w.ID != "" {
		if again := l.of(req.Name).enqueue(w); held.RetryAfter == 0 || held.RetryAfter > again {
			held.RetryAfter = again
		}
	}
	w, _ := lease.WaitingFrom(ctx)
	held.Channel = l.channel(req.Name)
	held.Queue, held.Fair = req.Mode == locker.Exclusive && !w.Quorum, l.permits > 0
	return held
}

func (l *Locker) refuseReader(req locker.Request) *locker.ContentionError {
	t := l.of(req.Name)
	holds := t.live()
	if len(holds) > 0 && holds[0].mode == locker.Exclusive {
		return refusal(holds[0], holds[0].until)
	}
	if len(holds) == 0 {
		return nil
	}
	if bar := t.barsReaders(); bar > 0 {
		return &locker.ContentionError{Name: req.Name, Hint: lease.Hint{RetryAfter: bar}}
	}
	return nil
}

func (l *Locker) refuseWriter(ctx context.Context, req locker.Request) *locker.ContentionError {
	t := l.of(req.Name)
	holds := t.live()
	switch {
	case l.permits > 0 && t.used()+max(req.Permits, 1) > l.permits:
		first := firstToEnd(holds)
		return refusal(first, first.until)
	case l.permits > 0 || len(holds) == 0:
		if kept := l.keptFor(req.Name, !req.NoWait, waiting(ctx, req).ID); kept > 0 {
			return &locker.ContentionError{Name: req.Name, Hint: lease.Hint{RetryAfter: kept}}
		}
		return nil
	}
	return refusal(holds[0], lastToEnd(holds).until)
}

// take is one attempt. The mutex is held.
func (l *Locker) take(ctx context.Context, req locker.Request) (*hold, error) {
	if err := l.refuse(ctx, req); err != nil {
		return nil, err
	}
	t := l.of(req.Name)
	h := &hold{locks: l, tenures: t, name: req.Name, owner: req.Owner, note: req.Note, mode: req.Mode}
	if l.permits > 0 {
		h.permits = max(req.Permits, 1)
	}
	if req.Mode == locker.Exclusive {
		t.bar = time.Time{}
	}
	h.begin(cmp.Or(req.TTL, locker.DefaultTTL), req.MinHold, req.Fenced)
	t.holds = append(t.holds, h)
	l.passOn(t, waiting(ctx, req))
	if l.permits > t.used() {
		l.wake(req.Name, lease.Op{}) // there may be enough for the next waiter too
	}
	return h, nil
}

// takeOver replaces the hold named by the request's handle with a new one. The mutex is held.
func (l *Locker) takeOver(req locker.Request) (*hold, error) {
	t := l.of(req.Name)
	old := req.Resume.Info()
	was := t.find(old.Token)
	switch {
	case was == nil || was.mode != req.Mode:
		return nil, locker.ErrNotHeld
	case req.Permits != 0 && req.Permits != was.permits && l.permits > 0:
		return nil, argument.Invalid("Request.Permits", strconv.Itoa(req.Permits),
			"the handle's, "+strconv.Itoa(was.permits)+", or 0")
	}
	h := &hold{
		locks: l, tenures: t, name: req.Name, mode: was.mode, over: was, permits: was.permits,
		unrecorded: was.unrecorded,
		owner:      cmp.Or(req.Owner, old.Owner, was.owner), note: cmp.Or(req.Note, was.note),
	}
	h.begin(cmp.Or(req.TTL, old.TTL, locker.DefaultTTL), max(req.MinHold, old.MinHold), req.Fenced || was.fence != 0)
	h.extend(was.until)
	t.holds[slices.Index(t.holds, was)] = h
	return h, nil
}
