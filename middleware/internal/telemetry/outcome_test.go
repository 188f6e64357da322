package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

var errShutdown = errors.New("shutdown")

// ended is a ctx that was cancelled with a cause.
func ended() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errShutdown)
	return ctx
}

func op(err error) error { return &locker.OpError{Op: "acquire", Name: "a", Err: err} }

func TestOutcomes(t *testing.T) {
	t.Parallel()
	held := &locker.ContentionError{Name: "a", Owner: "me"}
	refused := op(fmt.Errorf("%w; one attempt was made", held))
	loading := &driver.ServerError{Text: "LOADING Redis is loading"}
	dial := driver.NotSent(&net.OpError{Op: "dial", Net: "tcp", Err: io.ErrClosedPipe})
	lost := fmt.Errorf("%w: %w", locker.ErrLost, &driver.ServerError{Text: "WRONGTYPE x"})
	tests := []struct {
		name      string
		ctx       context.Context //nolint:containedctx // of the case
		err       error
		want      telemetry.Outcome // of an acquire
		rest      telemetry.Outcome // of a renewal or release
		errorType string
	}{
		{name: "success", want: telemetry.Acquired, rest: telemetry.Released},
		{name: "refused", err: refused, want: telemetry.Held, rest: telemetry.Error, errorType: "*locker.ContentionError"},
		{name: "MaxWait", err: op(errors.Join(held, locker.ErrMaxWait)), want: telemetry.Timeout, rest: telemetry.Error, errorType: "*locker.ContentionError"},
		{name: "deadline", err: op(errors.Join(held, context.DeadlineExceeded)), want: telemetry.Timeout, rest: telemetry.Error, errorType: "timeout"},
		{name: "cancelled", err: op(errors.Join(held, context.Canceled)), want: telemetry.Cancelled, rest: telemetry.Error, errorType: "canceled"},
		{name: "MaxWait in the queue", err: op(locker.ErrMaxWait), want: telemetry.Timeout, rest: telemetry.Error, errorType: "*errors.errorString"},
		{
			name: "cancelled for a reason", ctx: ended(), err: op(fmt.Errorf("%w: %w", context.Canceled, errShutdown)),
			want: telemetry.Cancelled, rest: telemetry.Error, errorType: "canceled",
		},
		{
			name: "that reason, from elsewhere", err: op(fmt.Errorf("%w: %w", context.Canceled, errShutdown)),
			want: telemetry.Error, rest: telemetry.Error, errorType: "canceled",
		},
		{name: "outage until MaxWait", err: op(errors.Join(loading, locker.ErrMaxWait)), want: telemetry.Error, rest: telemetry.Error, errorType: "LOADING"},
		{name: "server error", err: op(loading), want: telemetry.Error, rest: telemetry.Error, errorType: "LOADING"},
		{name: "no connection", err: op(dial), want: telemetry.Error, rest: telemetry.Error, errorType: "net_dial"},
		{
			name: "no connection within an attempt's time", err: op(driver.NotSent(context.DeadlineExceeded)), want: telemetry.Error,
			rest: telemetry.Error, errorType: "timeout",
		},
		{
			name: "called off before a connection came", ctx: ended(), err: op(driver.NotSent(context.Canceled)), want: telemetry.Cancelled,
			rest: telemetry.Error, errorType: "canceled",
		},
		{
			name: "read timeout", err: op(&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}), want: telemetry.Error, rest: telemetry.Error,
			errorType: "timeout",
		},
		{name: "connection lost", err: op(io.EOF), want: telemetry.Error, rest: telemetry.Error, errorType: "eof"},
		{
			name: "unknown", err: op(fmt.Errorf("%w: %w: %w", locker.ErrUnknownOutcome, context.Canceled, loading)),
			want: telemetry.Unknown, rest: telemetry.Unknown, errorType: "unknown_outcome",
		},
		{name: "lost", err: op(lost), want: telemetry.Error, rest: telemetry.Lost, errorType: "lost"},
		{name: "forgotten", err: op(&locker.LostError{Name: "a", Err: locker.ErrForgotten}), want: telemetry.Error, rest: telemetry.Lost, errorType: "forgotten"},
		{name: "nested", err: op(&locker.ContentionError{Name: "a", Nested: true}), want: telemetry.Nested, rest: telemetry.Error, errorType: "nested"},
		{name: "lost and unknown", err: op(errors.Join(lost, locker.ErrUnknownOutcome)), want: telemetry.Unknown, rest: telemetry.Lost, errorType: "lost"},
		{name: "not held", err: op(locker.ErrNotHeld), want: telemetry.Error, rest: telemetry.Error, errorType: "not_held"},
		{name: "invalid", err: op(driver.Invalid("a", "b", "c")), want: telemetry.Error, rest: telemetry.Error, errorType: "invalid_argument"},
		{name: "closed", err: op(driver.ErrClosed), want: telemetry.Error, rest: telemetry.Error, errorType: "closed"},
		{name: "unsupported", err: op(errors.ErrUnsupported), want: telemetry.Error, rest: telemetry.Error, errorType: "unsupported"},
		{name: "no return", err: telemetry.ErrNoReturn, want: telemetry.Error, rest: telemetry.Error, errorType: "panic"},
		{name: "of another package", err: op(fmt.Errorf("x: %w", foreign{})), want: telemetry.Error, rest: telemetry.Error, errorType: "telemetry_test.foreign"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			if got := telemetry.OfAcquire(ctx, tt.err); got != tt.want {
				t.Errorf("an acquire: %s, want %s", got, tt.want)
			}
			if got := telemetry.OfRelease(tt.err); got != tt.rest {
				t.Errorf("a release: %s, want %s", got, tt.rest)
			}
			renewed := tt.rest
			if tt.err == nil {
				renewed = telemetry.Renewed
			}
			if got := telemetry.OfRenew(tt.err); got != renewed {
				t.Errorf("a renewal: %s, want %s", got, renewed)
			}
			if tt.err == nil {
				return
			}
			if got := telemetry.ErrorType(tt.err); got != tt.errorType {
				t.Errorf("error.type %q, want %q", got, tt.errorType)
			}
		})
	}
	for _, o := range []telemetry.Outcome{telemetry.Acquired, telemetry.Held, telemetry.Timeout, telemetry.Cancelled, telemetry.Renewed, telemetry.Released} {
		if o.Failed() {
			t.Errorf("%s is a failure", o)
		}
	}
	for _, o := range []telemetry.Outcome{telemetry.Unknown, telemetry.Error, telemetry.Lost, telemetry.Nested} {
		if !o.Failed() {
			t.Errorf("%s is no failure", o)
		}
	}
}

// foreign is an error that wraps no other.
type foreign struct{}

func (foreign) Error() string { return "foreign" }
func (foreign) Unwrap() error { return nil }

// The text of a refusal has no owner unless asked for, and no trace context.
func TestTextOfRefusal(t *testing.T) {
	t.Parallel()
	note, _ := telemetry.JoinNote("nightly", valid, locker.MaxNameLen)
	raw := &locker.ContentionError{Name: "a", Owner: "secret-owner", Note: note}
	err := op(fmt.Errorf("%w; gave up", raw))
	for _, owners := range []bool{false, true} {
		text, held := telemetry.Text(err, owners), telemetry.Holder(err, owners)
		if strings.Contains(text, "secret-owner") != owners || (held.Owner != "") != owners {
			t.Errorf("owners %v: text %q, owner %q", owners, text, held.Owner)
		}
		if strings.Contains(text, valid) || !strings.Contains(text, `note "nightly"`) || !strings.HasSuffix(text, "; gave up") || held.Note != "nightly" {
			t.Errorf("owners %v: text %q, note %q", owners, text, held.Note)
		}
	}
	quorum := errors.Join(io.EOF, err, &locker.ContentionError{Name: "a", Owner: "another-secret", Note: "traceparent=" + valid})
	if text := telemetry.Text(quorum, false); strings.Contains(text, "secret") || strings.Contains(text, "traceparent") || len(telemetry.Refusals(quorum)) != 2 {
		t.Errorf("of a quorum: %d refusals, %q", len(telemetry.Refusals(quorum)), text)
	}
	if raw.Owner != "secret-owner" || raw.Note != note {
		t.Errorf("the error itself was changed: %v", raw)
	}
	if telemetry.Holder(io.EOF, true) != nil || telemetry.Text(io.EOF, false) != "EOF" {
		t.Error("another error is taken for a refusal")
	}
}

// A server that does not know a command quotes its arguments, one of which is the token of the
// hold.
func TestTextOfArguments(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{
		"ERR unknown command 'EVALSHA', with args beginning with: 'e0a9' '1' 'job' 'secret-token|me' ",
		"ERR unknown command `EVALSHA`, with args beginning with: `e0a9`, `1`, `job`, `secret-token`, ",
	} {
		err := fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, op(adapter.NewServerError(reply, errors.New(reply))))
		text := telemetry.Text(errors.Join(err, io.EOF), true)
		if strings.Contains(text, "secret") || !strings.Contains(text, "unknown command") || !strings.HasSuffix(text, "EOF") {
			t.Errorf("text %q", text)
		}
	}
}
