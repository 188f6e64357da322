package locker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// cancelled returns the error of a context that was cancelled because of cause.
func cancelled(t *testing.T, cause error) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	return locker.ContextErr(ctx)
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
		err := locker.NewAttemptError(tt.server, 2001*time.Millisecond, tt.err)
		if err.Error() != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("text %q\nwant %q", err, tt.want)
		}
	})
}
