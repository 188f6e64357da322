package resolve

import (
	"errors"
	"sync"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Unanswered tracks the sends of one acquire without an answer in time, and their late answers. The
// nil Unanswered has none.
type Unanswered struct {
	mu     sync.Mutex
	ledger ledger
	notify func() // after a late answer
}

// Settled reports whether the sends left no hold and can no longer create one.
func (u *Unanswered) Settled() bool { return u == nil || u.state().settled() }

func (u *Unanswered) state() ledger {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ledger
}

// Executed records the execution of one of the sends. Its hold is kept.
func (u *Unanswered) Executed() {
	if u != nil {
		u.update(ledger.executed)
	}
}

// Held records a hold to remove, besides those of later executed sends.
func (u *Unanswered) Held() {
	u.update(func(l ledger) ledger { l.present = max(l.present, 1); return l })
}

// Mark is the state of an Unanswered at a time.
type Mark struct{ ledger ledger }

// Mark returns the present state.
func (u *Unanswered) Mark() Mark {
	if u == nil {
		return Mark{}
	}
	return Mark{u.state()}
}

// RemovedSince records that a command sent at the mark left no hold. Holds known only since the
// mark still count: they may be newer than the command.
func (u *Unanswered) RemovedSince(m Mark) {
	if u != nil {
		u.update(func(l ledger) ledger { return l.absent(m.ledger) })
	}
}

func (u *Unanswered) update(change func(ledger) ledger) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ledger = change(u.ledger)
}

// Add counts a send with the result err. read returns the meaning of its late answer.
func (u *Unanswered) Add(err error, read func(v any) Verdict) {
	pending, late := errors.AsType[*driver.PendingError](err)
	u.update(func(l ledger) ledger { return l.unanswered(late) })
	if !late {
		return
	}
	pending.OnAnswer(func(v any, err error) {
		verdict := Unclear
		switch {
		case err == nil:
			verdict = read(v)
		case driver.NotExecuted(err):
			verdict = Refused
		}
		u.mu.Lock()
		u.ledger = u.ledger.answered(verdict)
		notify := u.notify
		u.mu.Unlock()
		if notify != nil {
			notify()
		}
	})
}

// onAnswer has f called after each late answer from now on. f must not block.
func (u *Unanswered) onAnswer(f func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.notify = f
}
