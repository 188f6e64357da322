package telemetry_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

var errShutdown = errors.New("shutdown")

// ended is a ctx cancelled with a cause.
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
		want      telemetry.Outcome // of an acquire; default: Error
		rest      telemetry.Outcome // of a renewal or release; default: Error
		errorType string
	}{
		{name: "success", want: telemetry.Acquired, rest: telemetry.Released},
		{name: "refused", err: refused, want: telemetry.Held, errorType: "*locker.ContentionError"},
		{name: "MaxWait", err: op(errors.Join(held, locker.ErrMaxWait)), want: telemetry.Timeout, errorType: "*locker.ContentionError"},
		{name: "deadline", err: op(errors.Join(held, context.DeadlineExceeded)), want: telemetry.Timeout, errorType: "timeout"},
		{name: "cancelled", err: op(errors.Join(held, context.Canceled)), want: telemetry.Cancelled, errorType: "canceled"},
		{name: "MaxWait in the queue", err: op(locker.ErrMaxWait), want: telemetry.Timeout, errorType: "*errors.errorString"},
		{
			name: "cancelled for a reason", ctx: ended(), err: op(fmt.Errorf("%w: %w", context.Canceled, errShutdown)),
			want: telemetry.Cancelled, errorType: "canceled",
		},
		{name: "that reason, from elsewhere", err: op(fmt.Errorf("%w: %w", context.Canceled, errShutdown)), errorType: "canceled"},
		{name: "outage until MaxWait", err: op(errors.Join(loading, locker.ErrMaxWait)), errorType: "LOADING"},
		{name: "server error", err: op(loading), errorType: "LOADING"},
		{name: "no connection", err: op(dial), errorType: "net_dial"},
		{name: "no connection within an attempt's time", err: op(driver.NotSent(context.DeadlineExceeded)), errorType: "timeout"},
		{name: "no connection until MaxWait", err: op(errors.Join(driver.NotSent(context.DeadlineExceeded), locker.ErrMaxWait)), errorType: "timeout"},
		{
			name: "refused, then no connection until MaxWait", err: op(errors.Join(held, driver.NotSent(context.DeadlineExceeded), locker.ErrMaxWait)),
			want: telemetry.Timeout, errorType: "timeout",
		},
		{
			name: "called off before a connection came", ctx: ended(), err: op(driver.NotSent(context.Canceled)),
			want: telemetry.Cancelled, errorType: "canceled",
		},
		{name: "read timeout", err: op(&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}), errorType: "timeout"},
		{name: "connection lost", err: op(io.EOF), errorType: "eof"},
		{
			name: "unknown", err: op(fmt.Errorf("%w: %w: %w", locker.ErrUnknownOutcome, context.Canceled, loading)),
			want: telemetry.Unknown, rest: telemetry.Unknown, errorType: "unknown_outcome",
		},
		{name: "lost", err: op(lost), rest: telemetry.Lost, errorType: "lost"},
		{name: "forgotten", err: op(&locker.LostError{Name: "a", Err: locker.ErrForgotten}), rest: telemetry.Lost, errorType: "forgotten"},
		{name: "nested", err: op(&locker.ContentionError{Name: "a", Nested: true}), want: telemetry.Nested, errorType: "nested"},
		{name: "lost and unknown", err: op(errors.Join(lost, locker.ErrUnknownOutcome)), want: telemetry.Unknown, rest: telemetry.Lost, errorType: "lost"},
		{name: "not held", err: op(locker.ErrNotHeld), errorType: "not_held"},
		{name: "invalid", err: op(argument.Invalid("a", "b", "c")), errorType: "invalid_argument"},
		{name: "closed", err: op(driver.ErrClosed), errorType: "closed"},
		{name: "unsupported", err: op(errors.ErrUnsupported), errorType: "unsupported"},
		{name: "no return", err: telemetry.ErrNoReturn, errorType: "panic"},
		{name: "of another package", err: op(fmt.Errorf("x: %w", foreign{})), errorType: "telemetry_test.foreign"},
	}
	for _, tt := range tests {
		ctx := tt.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		acquired, released := cmp.Or(tt.want, telemetry.Error), cmp.Or(tt.rest, telemetry.Error)
		renewed := released
		if tt.err == nil {
			renewed = telemetry.Renewed
		} else if got := telemetry.ErrorType(tt.err); got != tt.errorType {
			t.Errorf("%s: error.type %q, want %q", tt.name, got, tt.errorType)
		}
		got := [3]telemetry.Outcome{telemetry.OfAcquire(ctx, tt.err), telemetry.OfRelease(tt.err), telemetry.OfRenew(tt.err)}
		check.Equal(t, tt.name+": an acquire, a release, a renewal", got, [3]telemetry.Outcome{acquired, released, renewed})
	}
	for failed, outcomes := range map[bool][]telemetry.Outcome{
		false: {telemetry.Acquired, telemetry.Held, telemetry.Timeout, telemetry.Cancelled, telemetry.Renewed, telemetry.Released},
		true:  {telemetry.Unknown, telemetry.Error, telemetry.Lost, telemetry.Nested},
	} {
		for _, o := range outcomes {
			check.Equal(t, string(o)+" is a failure", o.Failed(), failed)
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

// A server quotes the arguments of an unknown command; one of them is the token of the hold.
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
