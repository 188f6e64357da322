//realtime:ok mutants run in bubbles

package conformance

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// flawedNotes is single with a flaw in the change of a note.
type flawedNotes struct {
	locker.Locker
	drv driver.Driver

	silent    bool // it changes nothing
	direct    bool // it writes the value without comparing, and renews by the old one
	once      bool // it is sent once
	forgets   bool // a release after an unanswered change forgets the new value
	exclusive bool // a renewal beside it takes it for a loss
}

func (f flawedNotes) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := f.Locker.Acquire(ctx, req)
	if err == nil {
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return &notedLease{Lease: inner, f: f, name: req.Name} })
	}
	return lock, err
}

type notedLease struct {
	lease.Lease
	f    flawedNotes
	name string

	changing atomic.Int32
	unknown  atomic.Bool
}

// Unwrap lets Handle find the token.
func (l *notedLease) Unwrap() lease.Lease { return l.Lease }

func (l *notedLease) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	switch {
	case op.Kind == lease.OpRenew && l.f.exclusive && l.changing.Load() > 0:
		return lease.Term{}, locker.ErrLost
	case op.Kind == lease.OpRelease && l.f.forgets && l.unknown.Load():
		_, err := l.f.drv.Eval(ctx, driver.NewScript(luaEndSilently), []string{l.name}, []string{"the old value"})
		return lease.Term{}, err
	case op.Kind != lease.OpNote:
		return l.Lease.Do(ctx, op)
	case l.f.silent:
		return lease.Term{}, nil
	case l.f.direct:
		_, err := l.f.drv.Eval(ctx, driver.NewScript(`return redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')`), []string{l.name},
			[]string{lease.NewToken() + "|me|" + op.Note})
		return lease.Term{}, err
	}
	l.changing.Add(1)
	defer l.changing.Add(-1)
	if l.f.once {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
	}
	term, err := l.Lease.Do(ctx, op)
	l.unknown.Store(err != nil)
	return term, err
}

func TestNoteMutants(t *testing.T) {
	t.Parallel()
	harness := func(f flawedNotes) *Harness {
		return &Harness{Dial: plain, New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			l, err := newSingle(drv, bound)
			flawed := f // the cases run side by side
			flawed.Locker, flawed.drv = l, drv
			return flawed, err
		}}
	}
	sound := harness(flawedNotes{})
	suspects := []suspect{
		{"a SetNote that changes nothing", harness(flawedNotes{silent: true}), sound, []string{"a note can be changed"}},
		{
			"a SetNote that compares nothing", harness(flawedNotes{direct: true}), sound,
			[]string{"a note can be changed", "a lost lock gets no note"},
		},
		{
			"a SetNote that is sent once", harness(flawedNotes{once: true}), sound,
			[]string{"a change of the note whose reply is lost succeeds"},
		},
		{
			"a release that forgets a change without an answer", harness(flawedNotes{forgets: true}), sound,
			[]string{"a change of the note that nobody answers loses nothing"},
		},
		{
			"a renewal that takes a change for a loss", harness(flawedNotes{exclusive: true}), sound,
			[]string{"a renewal beside a change of the note succeeds"},
		},
		{
			"a note of an owner that cannot be removed", reentrantWith(t, "elseif ARGV[7] == '' then", "elseif false then"), reentrantWith(t, "", ""),
			[]string{"a note can be changed"},
		},
		{
			"a note of a reader that cannot be removed", rwhashWith(t, "if ARGV[6] ~= '' or noting then", "if ARGV[6] ~= '' then"), rwhashWith(t, "", ""),
			[]string{"a note can be changed"},
		},
	}
	quorum := func(around func(locker.Locker) locker.Locker) *Harness {
		return &Harness{Dial: plain, New: newSingle, NewQuorum: func(nodes []locker.Locker, need int, bound Timeouts) (locker.Locker, error) {
			l, err := newRedlock(nodes, need, bound)
			return around(l), err
		}}
	}
	suspects = append(suspects, suspect{
		"a quorum whose SetNote changes nothing",
		quorum(func(l locker.Locker) locker.Locker { return flawedNotes{Locker: l, silent: true} }),
		quorum(func(l locker.Locker) locker.Locker { return l }),
		[]string{"a quorum's note can be changed"},
	})
	convict(t, suspects)
}
