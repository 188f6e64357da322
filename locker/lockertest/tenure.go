package lockertest

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// tenures is what there is of one name. Locker.mu guards it, and the holds in it.
type tenures struct {
	holds []*hold // the oldest first; several only where all are shared
	fence int64   // the last fencing token
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
	t.holds = slices.DeleteFunc(t.holds, func(h *hold) bool { return !now.Before(h.end) })
	return t.holds
}

// refusal is the error of an attempt that holds stand in the way of.
func refusal(name string, holds []*hold) error {
	left := time.Until(latest(holds))
	return &locker.ContentionError{Name: name, Owner: holds[0].owner, Note: holds[0].note, Left: left, RetryAfter: left, Released: holds[0].released}
}

// latest is when the last of holds, of which there is one at least, ends.
func latest(holds []*hold) time.Time {
	return slices.MaxFunc(holds, func(a, b *hold) int { return a.end.Compare(b.end) }).end
}

// take is one attempt. The mutex is held.
func (l *Locker) take(req locker.Request) (*hold, error) {
	t := l.of(req.Name)
	if holds := t.live(); len(holds) > 0 && (req.Mode == locker.Exclusive || holds[0].mode == locker.Exclusive) {
		return nil, refusal(req.Name, holds)
	}
	h := &hold{locks: l, tenures: t, name: req.Name, owner: req.Owner, note: req.Note, mode: req.Mode}
	h.begin(cmp.Or(req.TTL, locker.DefaultTTL), req.MinHold, req.Fenced)
	t.holds = append(t.holds, h)
	return h, nil
}

// takeOver puts a new hold in the place of the one that the request's handle names, as it stands.
// The mutex is held.
func (l *Locker) takeOver(req locker.Request) (*hold, error) {
	t := l.of(req.Name)
	old := req.Resume.Grant()
	i := slices.IndexFunc(t.live(), func(h *hold) bool { return h.token == old.Token && !h.released && h.mode == req.Mode })
	if i < 0 {
		return nil, locker.ErrNotHeld
	}
	was := t.holds[i]
	h := &hold{
		locks: l, tenures: t, name: req.Name, mode: was.mode, over: was,
		owner: cmp.Or(req.Owner, old.Owner, was.owner), note: cmp.Or(req.Note, was.note),
	}
	h.begin(cmp.Or(req.TTL, old.TTL, locker.DefaultTTL), max(req.MinHold, old.MinHold), req.Fenced || was.fence != 0)
	h.extend(was.end)
	t.holds[i] = h
	return h, nil
}
