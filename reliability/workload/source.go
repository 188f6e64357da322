package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/reliability/history"
)

// Random draws random values.
type Random struct{ *rand.Rand }

// Chance returns true with a probability of 1/n.
func (r Random) Chance(n int) bool { return r.IntN(n) == 0 }

// Between draws a duration of at least from and less than to, by the nanosecond.
func (r Random) Between(from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// One draws one element.
func One[T any](r Random, of []T) T { return of[r.IntN(len(of))] }

// Source draws the turns of clients of the same locks.
type Source struct {
	Random
	Model   history.Model
	Names   []Name
	TTLs    []time.Duration
	Watched bool // holds are renewed by a watchdog
}

// Turn draws a turn for a client with this owner. Reentrant locks have one of three owners instead.
func (s Source) Turn(owner string) Turn {
	ttl := One(s.Random, s.TTLs)
	t := Turn{
		Pause: s.Between(0, ttl), Name: s.IntN(len(s.Names)), TTL: ttl, Owner: owner,
		Timeout: s.Between(time.Millisecond, 2*ttl), Cancel: s.Chance(3),
		Shared: s.Model == history.ReadWrite && s.IntN(3) > 0,
		End:    One(s.Random, []End{Release, Release, Release, Release, Hasty, Overstay, Abandon}),
	}
	if s.Model == history.Reentrant {
		t.Owner = fmt.Sprintf("owner%d", s.IntN(3))
	}
	if s.Model == history.Semaphore {
		t.Permits = 1 + s.IntN(Permits)
	}
	if s.Watched && (t.End == Overstay || t.End == Abandon) {
		t.End = Release // else it would be renewed for ever
	}
	switch s.IntN(4) {
	case 0:
		t.MaxWait = s.Between(time.Millisecond, 3*ttl)
	case 1:
		t.NoWait = true
	case 2:
		t.Timeout = s.Between(0, ttl/20) // often ends in the middle of the acquire
	}
	for range s.IntN(6) {
		t.Steps = append(t.Steps, s.step(t))
	}
	return t
}

func (s Source) step(t Turn) Step {
	does := []Action{Look, Renew, Renew}
	if s.Names[t.Name].Fenced {
		does = append(does, Write, Write)
	}
	switch s.Model {
	case history.ReadWrite:
		does = append(does, Downgrade, Upgrade)
	case history.Reentrant:
		does = append(does, Nest)
	}
	one := Step{Pause: s.Between(0, t.TTL/3), Do: One(s.Random, does), TTL: One(s.Random, s.TTLs)}
	if s.Chance(2) {
		one.Timeout = s.Between(time.Millisecond, t.TTL)
	}
	if one.Do == Nest {
		inner := t
		inner.Pause, inner.TTL, inner.Steps = 0, One(s.Random, s.TTLs), nil
		for range s.IntN(3) {
			inner.Steps = append(inner.Steps, Step{Pause: s.Between(0, t.TTL/3), Do: One(s.Random, []Action{Look, Renew}), TTL: inner.TTL})
		}
		one.Inner = &inner
	}
	return one
}

// PassOn adds steps to a turn: they pass its hold on, or resume it by one of the clients.
func (s Source) PassOn(t *Turn, clients int) {
	t.Resume = s.Chance(3)
	for range s.IntN(3) {
		one := Step{Pause: s.Between(0, t.TTL/3), Do: Pass}
		if s.Chance(3) {
			one.Do, one.Client, one.Ask = Resume, s.IntN(clients), s.Chance(2)
			if s.Chance(2) {
				one.Timeout = s.Between(0, t.TTL/4)
			}
		}
		t.Steps = slices.Insert(t.Steps, s.IntN(len(t.Steps)+1), one)
	}
}

// MinHold lets the name of a turn stay taken for up to half of its TTL. It applies to nested turns
// too.
func (s Source) MinHold(t *Turn) {
	t.MinHold = s.Between(time.Millisecond, t.TTL/2)
	for _, one := range t.Steps {
		if one.Inner != nil && s.Chance(2) {
			s.MinHold(one.Inner)
		}
	}
}

// Hopeless is the maximum deadline of impatient clients.
const Hopeless = 50 * time.Millisecond

// Hurry gives each call of a turn a rarely sufficient deadline.
func (s Source) Hurry(t *Turn) {
	t.Timeout, t.Cancel, t.MaxWait, t.End = s.soon(), false, 0, Hasty
	for i := range t.Steps {
		one := &t.Steps[i]
		one.Pause, one.Timeout = s.Between(0, Hopeless), s.soon()
		if one.Inner != nil {
			one.Inner.Timeout, one.Inner.Cancel, one.Inner.MaxWait, one.Inner.End = t.Timeout, false, 0, Hasty
		}
	}
}

func (s Source) soon() time.Duration {
	if s.Chance(2) {
		return s.Between(1, time.Millisecond)
	}
	return s.Between(1, Hopeless)
}
