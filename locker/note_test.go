package locker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestSetNote(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a", Note: "before", TTL: time.Minute, Fenced: true}))
	old, fence, deadline := lock.Handle(), lock.Fence(), lock.Deadline()
	wantError(t, "SetNote", lock.SetNote(t.Context(), "after"))
	if state, err := l.Inspect(t.Context(), "a"); err != nil || state.Note != "after" {
		t.Errorf("the state is %+v, %v", state, err)
	}
	if lock.Fence() != fence || lock.Deadline().Before(deadline) {
		t.Errorf("the fencing token is %d, the Deadline %v; want %d, %v", lock.Fence(), lock.Deadline(), fence, deadline)
	}
	wantError(t, "ReleaseHandle of a handle from before", locker.ReleaseHandle(t.Context(), l, old), locker.ErrNotHeld)
	wantError(t, "Renew", lock.Renew(t.Context(), 0))
	wantError(t, "ReleaseHandle", locker.ReleaseHandle(t.Context(), l, lock.Handle()))
	err := lock.SetNote(t.Context(), "late")
	wantError(t, "SetNote after the loss", err, locker.ErrLost)
	wantOp(t, err, "note")
	wantError(t, "Err", lock.Err(), locker.ErrLost)
	if !strings.Contains(lock.Err().Error(), "gone at the change of its note") {
		t.Errorf("the error is %q", lock.Err())
	}
}

func TestSetNoteRefuses(t *testing.T) {
	t.Parallel()
	lock := locker.Must(lockertest.New().Acquire(t.Context(), locker.Request{Name: "a"}))
	wantInvalid(t, "no ctx", lock.SetNote(nil, "")) //nolint:staticcheck // nil on purpose
	wantInvalid(t, "a long note", lock.SetNote(t.Context(), strings.Repeat("x", locker.MaxNameLen+1)))
	wantError(t, "the nil Lock", (*locker.Lock)(nil).SetNote(t.Context(), "x"), locker.ErrNotHeld)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, "a cancelled ctx", lock.SetNote(cancelled, "x"), context.Canceled)
	wantError(t, "Release", lock.Release(t.Context()))
	wantError(t, "after Release", lock.SetNote(t.Context(), "x"), locker.ErrReleased)
}
