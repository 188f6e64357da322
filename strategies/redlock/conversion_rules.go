package redlock

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
)

// nodeMode is what is known about the mode of a node lock.
type nodeMode struct {
	exclusive bool // surely
	unsure    bool // it may be either
}

// is reports whether the mode is known to be mode.
func (m nodeMode) is(mode locker.Mode) bool {
	return !m.unsure && m.exclusive == (mode == locker.Exclusive)
}

// after returns what is known after a conversion to mode that ended with err; errUnanswered: that
// is in flight.
func (m nodeMode) after(mode locker.Mode, err error) nodeMode {
	switch {
	case m.is(mode): // the node was only asked
		return m
	case err == nil:
		return nodeMode{exclusive: mode == locker.Exclusive}
	case errors.Is(err, errors.ErrUnsupported):
		return m
	case errors.Is(err, locker.ErrNotAcquired): // a node lock whose upgrade is refused is shared
		return nodeMode{}
	default:
		return nodeMode{unsure: true}
	}
}

// upgradeVerdict returns the error of an upgrade that did not succeed; missed says how many nodes
// did it, or that the lock is lost. The upgrade was refused if it would have succeeded without the
// other holders.
func upgradeVerdict(t *nodeAnswers, missed error, f quorumFacts) error {
	refused := t.contended()
	switch {
	case isNotHeld(missed):
		return missed
	case refused > 0 && t.done+refused >= f.quorum:
		return t.contention(f.name, f.quorum, f.jitter)
	case t.done >= f.quorum:
		return fmt.Errorf("they did not stay exclusive until the Deadline: %w", missed)
	}
	return missed
}
