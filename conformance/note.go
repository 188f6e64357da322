package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
)

// noteCases are about Lock.SetNote. A strategy need not support it.
var noteCases = []testCase{
	{
		name: "a note can be changed", contract: 11, on: suite.AllKinds,
		why: "others see what the holder does, and the hold must stay what it was",
		run: noteCanBeChanged,
	},
	{
		name: "a change of the note whose reply is lost succeeds", contract: 11, on: suite.OneAddress,
		why: "the resend finds the note changed already; taken for a loss, that would end the work of a live holder",
		run: lostNoteSucceeds,
	},
	{
		name: "a change of the note that nobody answers loses nothing", contract: 11, on: suite.OnlyMemory,
		why: "the hold has one of two values, and a renewal or a release must find it, even if the change is executed late",
		run: unansweredNoteLosesNothing,
	},
	{
		name: "a renewal beside a change of the note succeeds", contract: 11, on: suite.WithoutSentinel,
		why: "the renewal may meet the new value with the old one: the hold is not lost",
		run: renewalBesideNote,
	},
	{
		name: "a quorum's note can be changed", contract: 11, on: suite.OneAddress, quorum: true,
		why: "the nodes must agree on the note, also those that missed the change, and on the hold",
		run: quorumNoteCanBeChanged,
	},
	{
		name: "a lost lock gets no note", contract: 9, on: suite.OneAddress,
		why: "it would become the note of the next holder",
		run: lostLockGetsNoNote,
	},
}

// notes demands that Inspect and a refusal show the note of a hold.
func (t *caseT) notes(l locker.Locker, lock *locker.Lock, note string) {
	t.Helper()
	ce := t.contended(l, locker.Request{Name: lock.Name(), NoWait: true})
	if !sameNote(ce.Note, note) || ce.Owner != lock.Owner() {
		t.Errorf("the refusal names owner %q, note %q; want %q, %q", ce.Owner, ce.Note, lock.Owner(), note)
	}
	state, err := locker.Inspect(t.Ctx, unwrap(l), lock.Name())
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	t.OK(err, "Inspect")
	if !sameNote(state.Note, note) || state.Owner != lock.Owner() || state.Holds != 1 {
		t.Errorf("the state is %+v, want the owner %q and the note %q", state, lock.Owner(), note)
	}
}

// sameNote reports whether a note is the given one. Tracing may have put its context behind it.
func sameNote(note, given string) bool {
	note, _, _ = strings.Cut(note, "traceparent=")
	return strings.TrimRight(note, " ") == given
}

// setsNote calls SetNote. It returns false if the strategy does not support it; other errors fail
// the case.
func (t *caseT) setsNote(lock *locker.Lock, note string) bool {
	t.Helper()
	err := lock.SetNote(t.Ctx, note)
	if errors.Is(err, errors.ErrUnsupported) {
		return false
	}
	t.OK(err, "SetNote")
	return true
}

func noteCanBeChanged(t *caseT) {
	l, other := t.direct(), t.direct()
	for _, fenced := range []bool{false, true} {
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Owner: "me", Note: "step 1", Fenced: fenced})
		fence, before := lock.Fence(), lock.Handle()
		for i, note := range []string{"step 2", "", "100 %|\xff done"} {
			if !t.setsNote(lock, note) {
				return
			}
			t.held(lock)
			t.notes(other, lock, note)
			t.covers(lock)
			t.OK(lock.Renew(t.Ctx, 0), "Renew after SetNote %d", i)
		}
		if lock.Fence() != fence {
			t.Errorf("the fencing token was %d and is %d after SetNote", fence, lock.Fence())
		}
		_, err := locker.Resume(t.Ctx, other, before)
		t.Is(err, locker.ErrNotHeld, "Resume of a handle from before SetNote")
		t.held(lock)
		resumed, err := locker.Resume(t.Ctx, other, lock.Handle())
		t.OK(err, "Resume after SetNote")
		t.OK(resumed.SetNote(t.Ctx, "resumed"), "SetNote of a resumed lock")
		t.notes(l, resumed, "resumed")
		t.Is(lock.SetNote(t.Ctx, "late"), locker.ErrLost, "SetNote of the Lock that was taken over")
		t.OK(resumed.Release(t.Ctx), "Release")
		t.Is(resumed.SetNote(t.Ctx, "late"), locker.ErrReleased, "SetNote after Release")
		t.gone(lock.Name(), "after the release")
	}
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	t.Is(lock.SetNote(t.Ctx, strings.Repeat("x", locker.MaxNameLen+1)), locker.ErrInvalid,
		"SetNote of a note that is too long")
	t.setsNote(lock, strings.Repeat("ü", locker.MaxNameLen/2))
	t.OK(lock.Release(t.Ctx), "Release")
}

func lostNoteSucceeds(t *caseT) {
	p, l := t.behind()
	other := t.direct()
	for what, fault := range t.noticed(faults) {
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Owner: "me", Note: "before"})
		trap := p.Fail(lock.Name(), fault)
		if !t.setsNote(lock, "after") {
			return
		}
		t.Event(trap.Hit(), "the fault happens")
		t.notes(other, lock, "after")
		t.OK(lock.Renew(t.Ctx, 0), "Renew after SetNote whose reply is %s", what)
		t.OK(lock.Release(t.Ctx), "Release after SetNote whose reply is %s", what)
		t.gone(lock.Name(), "after the release")
	}
}

func unansweredNoteLosesNothing(t *caseT) {
	p, l := t.behind()
	other := t.direct()
	for _, use := range []string{"renew", "release"} {
		for what, fault := range map[string]faultproxy.Fault{"executed": faultproxy.DropReply, "held back": faultproxy.StallRequest} {
			lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Owner: "me", Note: "before"})
			if errors.Is(lock.SetNote(t.Ctx, "before"), errors.ErrUnsupported) {
				return
			}
			trap, err := t.unanswered(p, lock.Name(), fault, "SetNote",
				func(ctx context.Context) error { return lock.SetNote(ctx, "after") })
			t.Is(err, locker.ErrUnknownOutcome, "SetNote without an answer, %s", what)
			again, err := t.unanswered(p, lock.Name(), fault, "another SetNote",
				func(ctx context.Context) error { return lock.SetNote(ctx, "at last") })
			t.Is(err, locker.ErrUnknownOutcome, "SetNote behind one without an answer, %s", what)
			t.held(lock)
			if use == "renew" {
				t.OK(lock.Renew(t.Ctx, 0), "Renew, the change is %s", what)
				t.notes(other, lock, "at last")
				trap.Release()
				again.Release()
				t.OK(lock.Renew(t.Ctx, 0), "Renew after the change, %s", what)
				t.notes(other, lock, "at last")
			}
			t.OK(lock.Release(t.Ctx), "Release, the change is %s", what)
			t.gone(lock.Name(), "after the release")
			trap.Release()
			again.Release()
			if use == "release" && fault == faultproxy.StallRequest {
				t.Event(trap.Executed(), "the late change is executed")
				t.gone(lock.Name(), "after the late change")
			}
		}
	}
}

func renewalBesideNote(t *caseT) {
	l := t.direct()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Owner: "me", Note: "0"})
	if !t.setsNote(lock, "1") {
		return
	}
	stop := make(chan struct{})
	renewals := suite.Background(func() error {
		for {
			select {
			case <-stop:
				return nil
			default:
			}
			if err := lock.Renew(t.Ctx, 0); err != nil {
				return err
			}
		}
	})
	for i := range 50 {
		t.OK(lock.SetNote(t.Ctx, fmt.Sprint(i)), "SetNote %d", i)
	}
	close(stop)
	t.OK(t.Result(renewals, "the renewals"), "Renew beside SetNote")
	t.notes(l, lock, "49")
	t.OK(lock.Release(t.Ctx), "Release")
	t.gone(lock.Name(), "after the release")
}

func quorumNoteCanBeChanged(t *caseT) {
	proxies, l := t.quorumBehind()
	other := t.quorum()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Owner: "me", Note: "before"})
	t.onAllNodes(lock)
	if !t.setsNote(lock, "after") {
		return
	}
	t.held(lock)
	t.Eventually("the nodes agree on the note", func() bool { return t.agreeOnNote(other, lock.Name(), "after") })
	disconnect(proxies[0], proxies[4])
	t.setsNote(lock, "without two")
	t.OK(lock.Renew(t.Ctx, 0), "Renew")
	disconnect(proxies[1])
	t.Is(lock.SetNote(t.Ctx, "without three"), locker.ErrUnknownOutcome, "SetNote without a quorum")
	t.held(lock)
	for _, p := range proxies {
		_ = p.Accept()
	}
	t.Eventually("the lock is renewed on all nodes", func() bool {
		t.OK(lock.Err(), "Err")
		return lock.Renew(t.Ctx, 0) == nil && t.agreeOnNote(other, lock.Name(), "without three")
	})
	t.onAllNodes(lock)
	resumed, err := locker.Resume(t.Ctx, other, lock.Handle())
	t.OK(err, "Resume after SetNote")
	t.OK(resumed.Release(t.Ctx), "Release")
	_ = lock.Release(t.Ctx) // a node slow to change the note may have missed the resume
	t.noNodeHas(lock.Name())
}

// agreeOnNote reports whether a quorum agrees on the note.
func (t *caseT) agreeOnNote(l locker.Locker, name, note string) bool {
	state, err := locker.Inspect(t.Ctx, l, name)
	return err == nil && sameNote(state.Note, note)
}

func lostLockGetsNoNote(t *caseT) {
	p, l := t.behind()
	other := t.direct()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Note: "old"})
	if !t.setsNote(lock, "older") {
		return
	}
	t.OK(lock.Handle().Release(t.Ctx, other), "Handle.Release")
	next := t.acquire(other, locker.Request{Name: lock.Name(), TTL: long, Owner: "next", Note: "new"})
	t.Is(lock.SetNote(t.Ctx, "late"), locker.ErrLost, "SetNote of a lost lock")
	t.lost(lock)
	t.sendsNothing(p, lock.Name(), func() {
		t.Is(lock.SetNote(t.Ctx, "late"), locker.ErrLost, "a second SetNote of a lost lock")
	})
	t.notes(other, next, "new")
	t.OK(next.Release(t.Ctx), "Release of the next holder")
}
