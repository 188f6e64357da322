package machines

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// placeLasts is the longest time for which a free lock is kept for an absent waiter: until 3 s
// after its next attempt is due, in 2 s, and 500 ms from its wake-up.
const placeLasts = 5500 * time.Millisecond

var (
	ttls    = []time.Duration{2 * time.Second, 20 * time.Second, 300 * time.Millisecond, 50 * time.Millisecond, 3 * time.Millisecond}
	watches = []time.Duration{2 * time.Second, 20 * time.Second}
	owners  = []string{"", "ann", "bob"}
)

func (m *machine) ttl(t *rapid.T) time.Duration {
	if m.watched {
		return rapid.SampledFrom(watches).Draw(t, "ttl")
	}
	return rapid.SampledFrom(ttls).Draw(t, "ttl")
}

func (m *machine) acquire(t *rapid.T) {
	req := locker.Request{Name: name, TTL: m.ttl(t), NoWait: true}
	what := fmt.Sprintf("%s := acquire for %v", m.nextID(), req.TTL)
	req.Owner = rapid.SampledFrom(owners).Draw(t, "owner")
	if req.Owner != "" {
		what += " as " + req.Owner
	}
	if req.Fenced = rapid.Bool().Draw(t, "fenced"); req.Fenced {
		what += ", fenced"
	}
	waited := time.Duration(0)
	if m.permits > 0 {
		req.Permits = rapid.IntRange(1, m.permits).Draw(t, "permits")
		what += fmt.Sprintf(", %d permits", req.Permits)
	}
	if m.shared {
		if rapid.Bool().Draw(t, "shared") {
			req.Mode = locker.Shared
			what += ", shared"
		}
		if req.NoWait = !rapid.Bool().Draw(t, "waits"); !req.NoWait {
			waited = rapid.SampledFrom([]time.Duration{0, time.Second, 3 * time.Second}).Draw(t, "waited")
			what += fmt.Sprintf(", having waited for %v", waited)
		}
	}
	before, among := m.srv.fence(), m.live()
	m.longest = max(m.longest, req.TTL)
	var lock *locker.Lock
	s := m.perform(t, what, func(ctx context.Context) (err error) {
		if waited > 0 {
			until, _ := ctx.Deadline()
			ctx = lease.WithWaiting(ctx, lease.Waiting{ID: lease.NewToken(), Since: time.Now().Add(-waited), Until: until})
		}
		lock, err = m.l.Acquire(ctx, req)
		return err
	})
	may, must := m.kept(s, nil, req.Owner, req.Mode, req.Permits)
	blocked := m.foreign.After(s.start) && m.hash
	switch {
	case s.err == nil && must:
		m.Fatalf("acquired beside another")
	case s.err == nil:
		nested := m.reentrant && among
		if nested && !m.live() { // so slow a step may have begun another tenure
			m.tenure, m.fence = 0, 0
		}
		h := m.granted(s, lock, req.TTL, req.Fenced)
		h.permits = req.Permits
		m.fencedAs(h, before, nested)
		if req.Mode == locker.Shared {
			m.intents = latest(m.intents, s.end.Add(500*time.Millisecond)) // it may begin a long turn
		}
	case errors.Is(s.err, locker.ErrNotAcquired):
		if !may {
			m.Fatalf("refused, and nobody holds it: %v", s.err)
		}
		m.refused(s)
		if !req.NoWait {
			m.intents = latest(m.intents, s.end.Add(placeLasts))
		}
	case errors.Is(s.err, locker.ErrLost):
		if s.end.Sub(s.start) < left(req.TTL) {
			m.Fatalf("lost before it was had, after %v: %v", s.end.Sub(s.start), s.err)
		}
	case s.faulted():
	case !blocked:
		m.Fatalf("nothing failed, and yet: %v", s.err)
	case driver.Transient(s.err) || errors.Is(s.err, locker.ErrUnknownOutcome):
		m.Fatalf("a key of another type is an error that lasts: %v", s.err)
	}
}

// granted adds a new lock to the model.
func (m *machine) granted(s step, lock *locker.Lock, ttl time.Duration, fenced bool) *hold {
	handle := lock.Handle()
	h := &hold{
		held:  held{id: m.nextID(), lock: lock, owner: lock.Owner(), deadline: lock.Deadline()},
		token: handle.Info().Token, mode: lock.Mode(), writer: lock.Mode() == locker.Exclusive,
		fenced: fenced, handle: []locker.Handle{handle}, from: s.start.Add(ttl), to: s.end.Add(ttl),
	}
	if m.open(s) {
		h.to = latest(h.to, m.srv.drv.lastLate().Add(ttl))
	}
	m.named++
	m.checkDeadline(s, h.held, s.start.Add(left(ttl)), s.end.Add(left(ttl)), ttl)
	m.holds = append(m.holds, h)
	if len(m.holds) > 6 {
		m.forget()
	}
	return h
}

// open reports whether a command of the step may still be executed.
func (m *machine) open(s step) bool { return s.faulted() && m.srv.drv.lastLate().After(s.end) }

// forget removes the first hold that has ended for everyone.
func (m *machine) forget() {
	for i, h := range m.holds {
		if h.released && h.gone && !h.unsure {
			m.holds = append(m.holds[:i:i], m.holds[i+1:]...)
			return
		}
	}
}

// live reports whether anyone holds, as far as the model knows.
func (m *machine) live() bool {
	for _, h := range m.holds {
		if h.must(time.Now()) {
			return true
		}
	}
	return false
}

// refused compares a refusal with the model.
func (m *machine) refused(s step) {
	held, ok := errors.AsType[*locker.ContentionError](s.err)
	if !ok {
		m.Fatalf("a refusal that says nothing: %v", s.err)
	}
	if m.haunted.After(s.start) || m.intents.After(s.start) {
		return
	}
	last, known := m.foreign, held.Owner == "" && (!m.hash || m.permits > 0)
	for _, h := range m.holds {
		if h.may(s.start) {
			last, known = latest(last, h.to), known || h.owner == held.Owner
		}
	}
	if !known {
		m.Fatalf("refused because of %q, who does not hold", held.Owner)
	}
	if held.RetryAfter <= 0 || held.RetryAfter > last.Sub(s.start)+time.Millisecond {
		m.Fatalf("refused, try again in %v; the last hold ends in %v", held.RetryAfter, last.Sub(s.start))
	}
}

func (m *machine) renew(t *rapid.T) {
	h := one(t, m.holds)
	ttl := rapid.SampledFrom([]time.Duration{0, 50 * time.Millisecond, time.Second, time.Minute}).Draw(t, "ttl")
	if m.watched {
		ttl = 0
	}
	before := h.err(time.Now())
	s := m.perform(t, fmt.Sprintf("renew %s for %v", h.id, ttl), func(ctx context.Context) error { return h.lock.Renew(ctx, ttl) })
	if ttl == 0 {
		ttl = h.lock.TTL()
	}
	m.longest = max(m.longest, ttl)
	switch {
	case before != nil:
		m.over(s.err, before, "renewing "+h.id)
		if s.sent > 0 {
			m.Fatalf("renewing %s, which is over, sent %d commands", h.id, s.sent)
		}
	case s.err == nil:
		if !h.may(s.start) {
			m.Fatalf("renewed %s, which is not at the server", h.id)
		}
		if !m.watched {
			m.checkDeadline(s, h.held, latest(h.deadline, s.start.Add(left(ttl))), latest(h.deadline, s.end.Add(left(ttl))), ttl)
		}
		h.deadline = h.lock.Deadline()
		h.from, h.to = latest(h.from, s.start.Add(ttl)), latest(h.to, s.end.Add(ttl))
	default:
		m.failed(s, h, "renewing")
		h.to = latest(h.to, s.end.Add(ttl))
	}
	if m.open(s) {
		h.to = latest(h.to, m.srv.drv.lastLate().Add(ttl))
	}
}

// failed compares the error of an operation on a hold not ended before.
func (m *machine) failed(s step, h *hold, what string) {
	switch {
	case errors.Is(s.err, locker.ErrLost):
		if h.must(s.end) && s.end.Before(h.deadline) {
			m.Fatalf("%s %s, which is at the server: %v", what, h.id, s.err)
		}
		h.over = locker.ErrLost
	case errors.Is(s.err, locker.ErrNotHeld):
		m.Fatalf("%s %s: %v, want that it is lost", what, h.id, s.err)
	case !s.faulted():
		m.Fatalf("%s %s: %v, and nothing failed", what, h.id, s.err)
	}
}

func (m *machine) release(t *rapid.T) {
	h := one(t, m.holds)
	before := h.err(time.Now())
	s := m.perform(t, "release "+h.id, func(ctx context.Context) error { return h.lock.Release(ctx) })
	switch {
	case h.released:
		if !errors.Is(s.err, locker.ErrReleased) || s.sent > 0 {
			m.Fatalf("releasing %s again: %v, %d commands", h.id, s.err, s.sent)
		}
		return
	case before != nil:
		m.over(s.err, before, "releasing "+h.id)
	case s.err == nil:
		if !h.may(s.start) && !s.faulted() {
			m.Fatalf("released %s, which is not at the server", h.id)
		}
	default:
		m.failed(s, h, "releasing")
	}
	if h.over == nil || before == nil {
		h.over = locker.ErrReleased
	}
	h.released, h.gone = true, true
}

func (m *machine) convert(t *rapid.T) {
	h := one(t, m.holds)
	to, what, do := locker.Exclusive, "upgrade ", h.lock.Upgrade
	if rapid.Bool().Draw(t, "down") {
		to, what, do = locker.Shared, "downgrade ", h.lock.Downgrade
	}
	before, wrote := h.err(time.Now()), h.writer
	s := m.perform(t, what+h.id, func(ctx context.Context) error { return do(ctx) })
	may, must := m.kept(s, h, h.owner, to, 1)
	switch {
	case before != nil:
		m.over(s.err, before, "converting "+h.id)
		return
	case !m.shared:
		if !errors.Is(s.err, errors.ErrUnsupported) && (!errors.Is(s.err, locker.ErrLost) || s.end.Before(h.deadline)) {
			m.Fatalf("%s%s: %v, and there is no such thing", what, h.id, s.err)
		}
		return
	case s.err == nil:
		if !h.may(s.start) {
			m.Fatalf("converted %s, which is not at the server", h.id)
		}
		if to == locker.Exclusive && must {
			m.Fatalf("upgraded %s beside another", h.id)
		}
		h.mode, h.writer = to, to == locker.Exclusive
		if got := h.lock.Fence(); h.fenced && h.writer && !wrote && !h.unsure && got <= m.fence && !s.faulted() {
			m.Fatalf("upgraded %s with the fencing token %d after %d", h.id, got, m.fence)
		}
		m.fence = max(m.fence, h.lock.Fence())
		h.handle = append(h.handle, h.lock.Handle())
	case errors.Is(s.err, locker.ErrNotAcquired):
		if to == locker.Shared || !may {
			m.Fatalf("%s%s: refused, and nobody else holds it: %v", what, h.id, s.err)
		}
	default:
		m.failed(s, h, what)
		if to == locker.Shared && errors.Is(s.err, locker.ErrUnknownOutcome) {
			h.mode = locker.Shared
		}
	}
	if s.faulted() {
		h.unsure = true
	}
	m.intents = latest(m.intents, s.end.Add(500*time.Millisecond))
}

func (m *machine) resume(t *rapid.T) {
	h := one(t, m.holds)
	handle := h.handle[rapid.IntRange(0, len(h.handle)-1).Draw(t, "handle")]
	before := m.srv.fence()
	var lock *locker.Lock
	s := m.perform(t, fmt.Sprintf("%s := resume %s by its %v handle", m.nextID(), h.id, handle.Mode()), func(ctx context.Context) (err error) {
		lock, err = locker.Resume(ctx, m.l, handle)
		return err
	})
	wrong := (handle.Mode() == locker.Exclusive) != h.writer && !h.unsure
	switch {
	case s.err == nil && (!h.may(s.start) && !m.haunted.After(s.start) || wrong):
		m.Fatalf("resumed %s, which is not there as a %v one", h.id, handle.Mode())
	case s.err == nil:
		ttl := lock.TTL()
		from, to := h.from, h.to
		h.gone = true
		if late := m.srv.drv.lastLate(); late.After(s.start) { // its acquire may win again, beside the new hold or after it, for its TTL
			h.gone, h.unsure, h.taken, h.from, h.to = false, true, true, s.start, latest(h.to, late.Add(h.lock.TTL()))
		}
		was := h.writer
		g := m.granted(s, lock, ttl, handle.Fence() != 0)
		g.from, g.to, g.writer, g.permits = latest(g.from, from), latest(g.to, to), was, h.permits
		m.fencedAs(g, before, handle.Fence() == 0) // an unfenced hold leaves the tenure's token as it is
	case errors.Is(s.err, locker.ErrLost):
		if s.end.Sub(s.start) < left(handle.Info().TTL) {
			m.Fatalf("resuming %s: lost before it was had, after %v: %v", h.id, s.end.Sub(s.start), s.err)
		}
		h.unsure = true
	case errors.Is(s.err, locker.ErrNotHeld):
		if h.must(s.end) && !wrong {
			m.Fatalf("resuming %s, which is there: %v", h.id, s.err)
		}
		if m.open(s) { // it may yet find a late acquire's hold, and is undone
			h.unsure, h.to = true, m.srv.drv.lastLate().Add(handle.Info().TTL)
		}
	case s.faulted():
		h.unsure = true
		h.to = latest(h.to, s.end, m.srv.drv.lastLate()).Add(handle.Info().TTL)
	case m.foreign.After(s.start) && m.hash:
	default:
		m.Fatalf("resuming %s: %v, and nothing failed", h.id, s.err)
	}
}

func (m *machine) markLost(t *rapid.T) {
	h := one(t, m.holds)
	if h.err(time.Now()) == nil {
		h.over = locker.ErrLost
	}
	h.lock.Hold().MarkLost(errCut)
	m.notef("mark %s as lost", h.id)
}
