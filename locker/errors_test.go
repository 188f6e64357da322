package locker_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Which sentinel matches which: nothing more, nothing less.
func TestSentinels(t *testing.T) {
	t.Parallel()
	all := []error{
		locker.ErrNotAcquired, locker.ErrMaxWait, locker.ErrNotHeld, locker.ErrLost, locker.ErrReleased, locker.ErrUnknownOutcome,
		locker.ErrNotReplicated, locker.ErrInvalid, locker.ErrClosed, errors.ErrUnsupported,
	}
	matches := map[[2]error]bool{
		{locker.ErrLost, locker.ErrNotHeld}: true, {locker.ErrReleased, locker.ErrNotHeld}: true,
	}
	for _, err := range all {
		for _, target := range all {
			want := err == target || matches[[2]error{err, target}] //nolint:errorlint // identity is the point
			if got := errors.Is(err, target); got != want {
				t.Errorf("%q matches %q: %v, want %v", err, target, got, want)
			}
		}
	}
	check.Error(t, "a refusal", &locker.ContentionError{}, locker.ErrNotAcquired)
	check.Error(t, "a shortfall", &locker.ReplicaError{}, locker.ErrNotReplicated)
	wantNotError(t, "a refusal", &locker.ContentionError{}, locker.ErrNotHeld, locker.ErrLost)
	check.Error(t, "an invalid argument", &locker.InvalidError{}, locker.ErrInvalid, driver.ErrInvalid)
	check.Error(t, "ErrClosed", locker.ErrClosed, driver.ErrClosed)
}

func TestContentionErrorText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  locker.ContentionError
		want string
	}{
		{locker.ContentionError{Name: "a"}, "lock is held by another"},
		{locker.ContentionError{Owner: "w", Note: "n", Left: time.Second}, `lock is held by another, owner "w", note "n", for 1s at most unless renewed`},
		{locker.ContentionError{Note: "line\nbreak"}, `lock is held by another, note "line\nbreak"`},
	} {
		check.Equal(t, "Error()", tt.err.Error(), tt.want)
	}
	long := locker.ContentionError{Owner: strings.Repeat("o", 1<<20), Note: strings.Repeat("n", 1<<20)}
	if got := len(long.Error()); got > 300 {
		t.Errorf("%d bytes of error, want the owner and the note shortened", got)
	}
}

func TestOpError(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("above: %w", &locker.OpError{Op: "renew", Name: "a\nb", Err: io.EOF})
	check.Error(t, "OpError", err, io.EOF)
	if want := `above: holdfast: renew "a\nb": EOF`; err.Error() != want {
		t.Errorf("Error() = %q, want %q", err.Error(), want)
	}
	long := locker.OpError{Op: "acquire", Name: strings.Repeat("n", 1<<20), Err: io.EOF}
	if got := len(long.Error()); got > 300 {
		t.Errorf("%d bytes of error, want the name shortened", got)
	}
}

// However many layers an error passes, one OpError wraps it, and the client's own is reachable.
func TestErrorsAreWrappedOnce(t *testing.T) {
	t.Parallel()
	client := &driver.ServerError{Text: "READONLY no", Err: io.EOF}
	inner := &locker.OpError{Op: "renew", Name: "node", Err: client}
	for name, below := range map[string]error{"plain": client, "wrapped below": inner, "deep below": fmt.Errorf("quorum: %w", inner)} {
		lock := hold(t, refusing(below), time.Minute)
		for what, err := range map[string]error{"Renew": lock.Renew(t.Context(), 0), "Release": lock.Release(t.Context())} {
			if n := strings.Count(err.Error(), "holdfast: "); n != 1 {
				t.Errorf("%s, %s: %q is wrapped %d times", name, what, err, n)
			}
			se, ok := errors.AsType[*driver.ServerError](err)
			if !ok || se != client || !errors.Is(err, io.EOF) {
				t.Errorf("%s, %s: the client's error is lost in %q", name, what, err)
			}
		}
	}
}
