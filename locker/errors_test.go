package locker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/lockerrors"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Each sentinel matches exactly the listed ones.
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

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	op := &locker.OpError{Op: "renew", Name: "a\nb", Err: io.EOF}
	check.Error(t, "OpError", op, io.EOF)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&locker.ContentionError{Name: "a"}, "lock is held by another"},
		{&locker.ContentionError{Owner: "w", Note: "n", Left: time.Second}, `lock is held by another, owner "w", note "n", for 1s at most unless renewed`},
		{&locker.ContentionError{Note: "line\nbreak"}, `lock is held by another, note "line\nbreak"`},
		{fmt.Errorf("above: %w", op), `above: holdfast: renew "a\nb": EOF`},
	} {
		check.Equal(t, "Error()", tt.err.Error(), tt.want)
	}
	long := strings.Repeat("n", 1<<20)
	for _, err := range []error{&locker.ContentionError{Owner: long, Note: long}, &locker.OpError{Op: "acquire", Name: long, Err: io.EOF}} {
		if got := len(err.Error()); got > 300 {
			t.Errorf("%d bytes of error, want the name, the owner and the note shortened", got)
		}
	}
}

// The error of a lost lock names the lock, the reason and the last error; wrappers name the lock
// once.
func TestLostError(t *testing.T) {
	t.Parallel()
	const gone = " (ended by Break, deleted, expired, or the server lost its data)"
	renew := func(lock *locker.Lock) { _ = lock.Renew(context.Background(), 0) }
	marked := func(cause error) func(*locker.Lock) {
		return func(l *locker.Lock) { l.Hold().MarkLost(cause) }
	}
	type test struct {
		answer error // of the server
		end    func(lock *locker.Lock)
		text   string
		want   []error
	}
	check.EachInFakeTime(t, map[string]test{
		"gone at a renewal":   {locker.ErrLost, renew, ": its key was gone at the renewal" + gone, nil},
		"gone at a downgrade": {locker.ErrNotHeld, func(l *locker.Lock) { _ = l.Downgrade(context.Background()) }, ": its key was gone at the downgrade" + gone, nil},
		"gone at an upgrade":  {locker.ErrNotHeld, func(l *locker.Lock) { _ = l.Upgrade(context.Background()) }, ": its key was gone at the upgrade" + gone, nil},
		"gone at a note":      {locker.ErrLost, func(l *locker.Lock) { _ = l.SetNote(context.Background(), "n") }, ": its key was gone at the change of its note" + gone, nil},
		"perhaps taken over": {locker.ErrLost, func(l *locker.Lock) { l.Handle(); renew(l) },
			": its key was gone at the renewal (ended by Break, deleted, expired, taken over by a resume, or the server lost its data)", nil},
		"another's key": {fmt.Errorf("%w: %w", locker.ErrLost, io.ErrNoProgress), renew, ": it was gone at the renewal: " + io.ErrNoProgress.Error(), []error{io.ErrNoProgress}},
		"never renewed": {nil, func(*locker.Lock) { check.Advance(time.Hour) }, ": its Deadline passed before it was renewed", nil},
		"not renewed": {nil, func(l *locker.Lock) {
			l.Hold().ExplainExpiry(fmt.Errorf("it was not renewed by 127.0.0.1:6379: %w", io.EOF))
			check.Advance(time.Hour)
		}, ": its Deadline passed: it was not renewed by 127.0.0.1:6379: EOF", []error{io.EOF}},
		"marked":             {nil, marked(io.EOF), ": EOF", []error{io.EOF}},
		"marked, no cause":   {nil, marked(nil), "", nil},
		"marked by a loss":   {nil, marked(locker.ErrLost), "", nil},
		"marked by an end":   {nil, marked(locker.ErrNotHeld), "", nil},
		"marked, loss is in": {nil, marked(errors.Join(io.EOF, locker.ErrLost)), ": EOF\nlock was lost", []error{io.EOF}},
	}, func(t *testing.T, tt test) {
		server := refusing(tt.answer)
		err := locker.Do(t.Context(), grants(server), locker.Request{Name: "leader"}, func(ctx context.Context, lock *locker.Lock) error {
			tt.end(lock)
			synctest.Wait()
			if got, want := fmt.Sprint(context.Cause(ctx)), `holdfast: lock "leader" was lost`+tt.text; got != want {
				t.Errorf("Cause %q, want %q", got, want)
			}
			check.Error(t, "Cause", context.Cause(ctx), append(tt.want, locker.ErrLost, locker.ErrNotHeld)...)
			found, ok := errors.AsType[*locker.LostError](lock.Err())
			if !ok || found.Name != "leader" || lock.Err() != context.Cause(ctx) { //nolint:errorlint // the very same
				t.Errorf("Err %v, a LostError of %q: %v; want the cause", lock.Err(), found.Name, ok)
			}
			renewed := lock.Renew(ctx, 0)
			if got, want := fmt.Sprint(renewed), `holdfast: renew "leader": lock was lost`+tt.text; got != want {
				t.Errorf("Renew %q, want %q", got, want)
			}
			return errors.New("fn's own")
		})
		if got, want := err.Error(), "fn's own\n"+`holdfast: release "leader": lock was lost`+tt.text; got != want {
			t.Errorf("Do %q, want %q", got, want)
		}
		check.Error(t, "Do", err, append(tt.want, locker.ErrLost)...)
	})
}

// cancelled returns the error of a context cancelled with cause.
func cancelled(t *testing.T, cause error) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	return lease.ContextErr(ctx)
}

func TestAttemptError(t *testing.T) {
	t.Parallel()
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6380}
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unknown := func(err error) error { return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err) }
	type test struct {
		server string
		err    error
		want   string
	}
	check.Each(t, map[string]test{
		"refused":             {"a:1,b:2", driver.NotSent(fmt.Errorf("pool: %w", refused)), "no answer from 127.0.0.1:6380 in 2.001s: connection refused"},
		"cut":                 {"a:1", unknown(io.EOF), "no answer from a:1 in 2.001s, the outcome is unknown: EOF"},
		"silent":              {"a:1", unknown(context.DeadlineExceeded), "no answer from a:1 in 2.001s, the outcome is unknown"},
		"silent, i/o timeout": {"", unknown(os.ErrDeadlineExceeded), "no answer from the server in 2.001s, the outcome is unknown"},
		"silent in the end": {
			"a:1", unknown(fmt.Errorf("%w: %w: %w", context.DeadlineExceeded, locker.ErrMaxWait, refused)),
			"no answer from 127.0.0.1:6380 in 2.001s, the outcome is unknown: connection refused",
		},
		"not ready": {
			"a:1", &driver.ServerError{Text: "LOADING it", Err: errors.New("client's own")},
			"no lock from a:1 in 2.001s: server error: LOADING it",
		},
		"cancelled for another server": {
			"a:1", unknown(cancelled(t, fmt.Errorf("task 3: %w", refused))),
			"no answer from a:1 in 2.001s, the outcome is unknown: task 3: dial tcp 127.0.0.1:6380: connect: connection refused",
		},
		"cancelled for a reason":     {"a:1", unknown(cancelled(t, io.EOF)), "no answer from a:1 in 2.001s, the outcome is unknown: EOF"},
		"cancelled for another lock": {"a:1", unknown(cancelled(t, locker.ErrLost)), "no answer from a:1 in 2.001s, the outcome is unknown"},
		"MaxWait":                    {"a:1", unknown(cancelled(t, locker.ErrMaxWait)), "no answer from a:1 in 2.001s, the outcome is unknown"},
		"own time-out":               {"a:1", driver.NotSent(syscall.ETIMEDOUT), "no answer from a:1 in 2.001s: connection timed out"},
	}, func(t *testing.T, tt test) {
		err := lockerrors.NewAttemptError(tt.server, 2001*time.Millisecond, tt.err)
		if err.Error() != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("text %q\nwant %q", err, tt.want)
		}
	})
}

// A context's cause about another lock is kept as text; any other cause matches. The error reply to
// another command is not found: its code decides whether that command was executed.
func TestContextErr(t *testing.T) {
	t.Parallel()
	if err := lease.ContextErr(t.Context()); err != nil {
		t.Errorf("error %v of a context that lasts", err)
	}
	errShutdown := errors.New("shutting down")
	reply, loading := &driver.ServerError{Text: "ERR something else"}, &driver.ServerError{Text: "LOADING loading"}
	wrongType := &driver.ServerError{Text: "WRONGTYPE wrong kind of value"}
	of := func(err error) error {
		return fmt.Errorf("task 3: %w", &locker.OpError{Op: "acquire", Name: "other", Err: err})
	}
	type test struct {
		cause  error
		target error
		match  bool
	}
	check.Each(t, map[string]test{
		"cancelled":                          {context.Canceled, context.Canceled, true},
		"foreign":                            {errShutdown, errShutdown, true},
		"foreign, a deadline":                {fmt.Errorf("query: %w", context.DeadlineExceeded), context.DeadlineExceeded, true},
		"MaxWait itself":                     {locker.ErrMaxWait, locker.ErrMaxWait, true},
		"MaxWait of another acquire":         {of(locker.ErrMaxWait), locker.ErrMaxWait, false},
		"contention":                         {&locker.ContentionError{Name: "other"}, locker.ErrNotAcquired, false},
		"not held":                           {locker.ErrNotHeld, locker.ErrNotHeld, false},
		"lost":                               {&locker.LostError{Name: "other"}, locker.ErrLost, false},
		"released":                           {locker.ErrReleased, locker.ErrReleased, false},
		"unknown outcome":                    {fmt.Errorf("task 3: %w", locker.ErrUnknownOutcome), locker.ErrUnknownOutcome, false},
		"replicas":                           {&locker.ReplicaError{}, locker.ErrNotReplicated, false},
		"invalid":                            {locker.ErrInvalid, locker.ErrInvalid, false},
		"closed":                             {locker.ErrClosed, locker.ErrClosed, false},
		"not sent":                           {driver.NotSent(errShutdown), driver.ErrNotSent, false},
		"permanent":                          {driver.Permanent(errShutdown), driver.ErrPermanent, false},
		"a foreign error of another acquire": {of(errShutdown), errShutdown, false},
		"joined":                             {errors.Join(errShutdown, locker.ErrLost), locker.ErrLost, false},
		"a reply to another command":         {reply, reply, false},
		"a reply that nothing was executed":  {loading, loading, false},
		"a reply of the wrong type":          {wrongType, wrongType, false},
	}, func(t *testing.T, tt test) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(tt.cause)
		err := lease.ContextErr(ctx)
		if !errors.Is(err, context.Canceled) || errors.Is(err, tt.target) != tt.match {
			t.Errorf("error %v, want one that matches context.Canceled, and the cause: %v", err, tt.match)
		}
		if !strings.Contains(err.Error(), tt.cause.Error()) {
			t.Errorf("error %v does not name the cause %q", err, tt.cause)
		}
		if driver.CodeOf(err) != "" || driver.NotExecuted(err) {
			t.Errorf("the reply to another command was taken for this one's: %v", err)
		}
	})
}
