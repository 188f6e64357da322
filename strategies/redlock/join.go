package redlock

import (
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/locker"
)

// reply is where a node's answer goes.
type reply struct {
	round *round
	node  int
}

func (a reply) answer(err error) { a.round.answer(a.node, err) }

// joiner is a round that waits for what a node was asked before: its part joins the round when it
// comes.
type joiner struct {
	reply
	f func(m *member, p *part, r reply) // nil: the round is that of the release, for which it comes too late
}

// await lets round r wait for the node's answer. The hold's mutex is held, and nobody else knows
// the round.
func (m *member) await(r *round, node int, f func(*member, *part, reply)) {
	r.errs[node] = errUnanswered
	r.pending++
	m.rounds = append(slices.DeleteFunc(m.rounds, func(j joiner) bool { return j.over() }), joiner{reply{r, node}, f})
}

// join tells the round what came: a part that joined the hold, or err, why there is none, or what
// became of its release.
func (j joiner) join(m *member, p *part, joined bool, err error) {
	switch {
	case j.over():
	case j.f != nil && joined:
		j.f(m, p, j.reply)
	case j.f != nil && err == nil, errors.Is(err, locker.ErrNotAcquired):
		j.answer(locker.ErrNotHeld)
	default:
		j.answer(err)
	}
}

// over tells whether nobody waits for the answer any more.
func (a reply) over() bool {
	a.round.mu.Lock()
	defer a.round.mu.Unlock()
	return a.round.left
}
