package locker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

// The error of a lost lock names the lock, how it was lost, and the last error; what wraps it names
// the lock once.
func TestLostError(t *testing.T) {
	t.Parallel()
	const gone = " (ended by Break, deleted, expired, or the server lost its data)"
	renew := func(lock *locker.Lock) { _ = lock.Renew(context.Background(), 0) }
	type test struct {
		answer error // of the server
		end    func(lock *locker.Lock)
		text   string
		want   []error
	}
	check.EachInFakeTime(t, map[string]test{
		"gone at a renewal":   {locker.ErrLost, renew, "its key was gone at the renewal" + gone, nil},
		"gone at a downgrade": {locker.ErrNotHeld, func(l *locker.Lock) { _ = l.Downgrade(context.Background()) }, "its key was gone at the downgrade" + gone, nil},
		"gone at an upgrade":  {locker.ErrNotHeld, func(l *locker.Lock) { _ = l.Upgrade(context.Background()) }, "its key was gone at the upgrade" + gone, nil},
		"gone at a note":      {locker.ErrLost, func(l *locker.Lock) { _ = l.SetNote(context.Background(), "n") }, "its key was gone at the change of its note" + gone, nil},
		"perhaps taken over": {locker.ErrLost, func(l *locker.Lock) { l.Handle(); renew(l) },
			"its key was gone at the renewal (ended by Break, deleted, expired, taken over by a resume, or the server lost its data)", nil},
		"another's key": {fmt.Errorf("%w: %w", locker.ErrLost, io.ErrNoProgress), renew, "it was gone at the renewal: " + io.ErrNoProgress.Error(), []error{io.ErrNoProgress}},
		"never renewed": {nil, func(*locker.Lock) { check.Advance(time.Hour) }, "its Deadline passed before it was renewed", nil},
		"not renewed": {nil, func(l *locker.Lock) {
			l.Hold().ExplainExpiry(fmt.Errorf("it was not renewed by 127.0.0.1:6379: %w", io.EOF))
			check.Advance(time.Hour)
		}, "its Deadline passed: it was not renewed by 127.0.0.1:6379: EOF", []error{io.EOF}},
		"marked": {nil, func(l *locker.Lock) { l.Hold().MarkLost(io.EOF) }, "EOF", []error{io.EOF}},
	}, func(t *testing.T, tt test) {
		server := refusing(tt.answer)
		err := locker.Do(t.Context(), grants(server), locker.Request{Name: "leader"}, func(ctx context.Context, lock *locker.Lock) error {
			tt.end(lock)
			synctest.Wait()
			if got, want := fmt.Sprint(context.Cause(ctx)), `holdfast: lock "leader" was lost: `+tt.text; got != want {
				t.Errorf("Cause %q, want %q", got, want)
			}
			check.Error(t, "Cause", context.Cause(ctx), append(tt.want, locker.ErrLost, locker.ErrNotHeld)...)
			found, ok := errors.AsType[*locker.LostError](lock.Err())
			if !ok || found.Name != "leader" || lock.Err() != context.Cause(ctx) { //nolint:errorlint // the very same
				t.Errorf("Err %v, a LostError of %q: %v; want the cause", lock.Err(), found.Name, ok)
			}
			renewed := lock.Renew(ctx, 0)
			if got, want := fmt.Sprint(renewed), `holdfast: renew "leader": lock was lost: `+tt.text; got != want {
				t.Errorf("Renew %q, want %q", got, want)
			}
			return errors.New("fn's own")
		})
		if got, want := err.Error(), "fn's own\n"+`holdfast: release "leader": lock was lost: `+tt.text; got != want {
			t.Errorf("Do %q, want %q", got, want)
		}
		check.Error(t, "Do", err, append(tt.want, locker.ErrLost)...)
	})
}

// A release that fails after the loss says both in one line.
func TestReleaseThatFailsAfterTheLoss(t *testing.T) {
	t.Parallel()
	lock := hold(t, refusing(io.EOF), time.Minute)
	lock.Hold().MarkLost(io.ErrNoProgress)
	err := lock.Release(t.Context())
	check.Error(t, "Release", err, locker.ErrLost, io.EOF, io.ErrNoProgress)
	want := `holdfast: release "a": holdfast: lock "a" was lost: ` + io.ErrNoProgress.Error() + "; the release of what may be left failed: EOF"
	check.Equal(t, "Release", err.Error(), want)
}
