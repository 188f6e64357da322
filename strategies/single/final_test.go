//realtime:ok each test runs in a bubble, by run of tools_test.go

package single_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// The owner in ctx is validated like the one in the Request.
func TestOwnerOfContextTooLong(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		ctx := locker.WithOwner(t.Context(), strings.Repeat("o", locker.MaxNameLen+1))
		_, err := b.Acquire(ctx, locker.Request{Name: name})
		match(t, err, []error{locker.ErrInvalid}, nil)
		if b.drv.Sent() != 0 {
			t.Error("it was sent all the same")
		}
	})
}

// A fence counter that is not a number is a permanent error: no one retries, and nothing is
// written.
func TestFenceCounterThatIsNoNumber(t *testing.T) {
	t.Parallel()
	for found, set := range map[string]func(b bench, key string){
		"text":           func(b bench, key string) { _ = b.m.Set(key, "soon") },
		"a list":         func(b bench, key string) { _, _ = b.m.Push(key, "1") },
		"too much":       func(b bench, key string) { _ = b.m.Set(key, "9007199254740991") },
		"a negative one": func(b bench, key string) { _ = b.m.Set(key, "-1") },
	} {
		t.Run(found, func(t *testing.T) {
			run(t, single.Config{}, func(t *testing.T, b bench) {
				fence, _ := driver.Sibling(name, driver.FenceSuffix)
				set(b, fence)
				l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{})))
				start := time.Now()
				_, err := l.Acquire(t.Context(), locker.Request{Name: name, Fenced: true})
				if !errors.Is(err, driver.ErrPermanent) || driver.Transient(err) || time.Since(start) > 0 {
					t.Errorf("%v after %v; want an error that does not pass, at once", err, time.Since(start))
				}
				match(t, err, []error{driver.ErrPermanent}, []error{locker.ErrNotAcquired, locker.ErrUnknownOutcome})
				if b.m.Exists(name) {
					t.Error("the lock was written all the same")
				}
			})
		})
	}
}
