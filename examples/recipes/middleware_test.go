package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// counter is a Locker that counts the outcomes of acquisitions.
type counter struct {
	inner            locker.Locker
	acquired, failed *atomic.Int64
}

// Unwrap lets locker.Inspect and others find what the strategy implements.
func (c counter) Unwrap() locker.Locker { return c.inner }

// Acquire implements locker.Locker.
func (c counter) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := c.inner.Acquire(ctx, req)
	if err != nil {
		c.failed.Add(1)
	} else {
		c.acquired.Add(1)
	}
	return lock, err
}

// guard is a Locker for the names of one team.
type guard struct {
	inner  locker.Locker
	prefix string
}

// Unwrap lets locker.Inspect and others find what the strategy implements.
func (g guard) Unwrap() locker.Locker { return g.inner }

var errForeignName = errors.New("a name of another team")

// Acquire implements locker.Locker.
func (g guard) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if !strings.HasPrefix(req.Name, g.prefix) {
		// Permanent: middleware/retry does not ask again.
		return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: driver.Permanent(errForeignName)}
	}
	return g.inner.Acquire(ctx, req)
}

// Middleware counts acquisitions, and refuses names.
func Example_middleware() {
	b := connect()
	defer b.close()
	var acquired, failed atomic.Int64
	count := func(inner locker.Locker) locker.Locker { return counter{inner, &acquired, &failed} }
	only := func(prefix string) locker.Middleware {
		return func(inner locker.Locker) locker.Locker { return guard{inner, prefix} }
	}
	strategy := locker.Must(single.New(b.driver, single.Config{}))
	l := locker.Chain(locker.Must(holdfast.Wrap(strategy, holdfast.Config{})), count, only("billing:"))

	ctx := context.Background()
	for _, name := range []string{"billing:42", "shipping:7"} {
		err := locker.Do(ctx, l, locker.Request{Name: name}, func(context.Context, *locker.Lock) error { return nil })
		fmt.Println(name, err)
	}
	fmt.Println(acquired.Load(), "acquired,", failed.Load(), "failed")
	// Output:
	// billing:42 <nil>
	// shipping:7 holdfast: acquire "shipping:7": a name of another team
	// 1 acquired, 1 failed
}

// Middleware keeps two things: refusals end the wait at once, also that of one name of several, and
// the strategy's interfaces are found through it.
func TestMiddleware(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		locks := lockertest.New()
		inside := locker.Must(holdfast.Wrap(guard{locks, "billing:"}, holdfast.Config{})) // retry is around it
		began := time.Now()
		_, err := inside.Acquire(t.Context(), locker.Request{Name: "shipping:7"})
		if !errors.Is(err, errForeignName) || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		err = locker.DoAll(t.Context(), inside, []locker.Request{{Name: "billing:1"}, {Name: "shipping:7"}},
			func(context.Context, *locker.Locks) error { t.Error("it ran"); return nil })
		check.Is(t, err, errForeignName)
		check.Equal(t, "a lock is left", locker.Must(locker.Inspect(t.Context(), inside, "billing:1")).Held, false)
	})
}
