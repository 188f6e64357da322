package resolve_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// The text does not say at once that the outcome is unknown and that the command was not sent.
func TestOpenThenNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closed := driver.Permanent(driver.NotSent(errors.New("client is closing")))
		sends := resolve.Sends{Timeout: time.Second, Limit: time.Second}
		err := sends.Resolve(t.Context(), &script{answers: []error{errCut, closed}})
		const want = "an earlier send was not answered; the last one: command was not sent: client is closing"
		if !errors.Is(err, locker.ErrUnknownOutcome) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an unknown outcome: %s", err, want)
		}
	})
}
