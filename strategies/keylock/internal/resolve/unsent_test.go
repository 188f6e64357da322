package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/lockerrors"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// dial is a send whose client dials again and again until ctx ends.
func dial(ctx context.Context) error {
	<-ctx.Done()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	return fmt.Errorf("%w: %w", driver.NotSent(ctx.Err()), refused)
}

// A caller that leaves while the client dials gets the failure of the dial and the cause of its
// ctx.
func TestDialThatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, locker.ErrMaxWait)
		defer cancel()
		sends := resolve.Sends{Timeout: time.Second, Limit: time.Second}
		err := sends.Resolve(ctx, dial)
		check.Is(t, err, driver.ErrNotSent, locker.ErrMaxWait, syscall.ECONNREFUSED)
		text := lockerrors.NewAttemptError("a:1", 300*time.Millisecond, err).Error()
		check.Equal(t, "text", text, "no answer from a:1 in 300ms: connection refused")
	})
}

// The text never calls the outcome unknown and the command unsent at the same time.
func TestOpenThenNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closed := driver.Permanent(driver.NotSent(errors.New("client is closing")))
		sends := resolve.Sends{Timeout: time.Second, Limit: time.Second}
		err := sends.Resolve(t.Context(), (&script{answers: []error{errCut, closed}}).send)
		const want = "an earlier send was not answered; the last one: command was not sent: client is closing"
		if !errors.Is(err, locker.ErrUnknownOutcome) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an unknown outcome: %s", err, want)
		}
	})
}
