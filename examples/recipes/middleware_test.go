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

// counter is a Locker that counts what became of acquisitions. It changes nothing, so it takes part
// in batches.
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

// AcquireBatch implements locker.BatchAcquirer. Acquire sees each lock of the batch afterwards.
func (c counter) AcquireBatch(ctx context.Context, reqs []locker.Request) (locker.Batch, error) {
	if inner, ok := c.inner.(locker.BatchAcquirer); ok {
		return inner.AcquireBatch(ctx, reqs)
	}
	return nil, errors.ErrUnsupported
}

// guard is a Locker for the names of one team. It has a say in who may have a lock, so it has no
// AcquireBatch: locker.DoAll then acquires one lock after another, through Acquire.
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

// What middleware must keep: refusals end the wait at once, batches go through it or around it as it
// wants, and what the strategy can do is found behind it.
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
		if !errors.Is(err, errForeignName) {
			t.Error(err)
		}
		if state := locker.Must(locker.Inspect(t.Context(), inside, "billing:1")); state.Held {
			t.Errorf("a lock is left: %+v", state)
		}
	})
}

// A counter lets several names be acquired in one round trip, and counts each. A guard does not.
func TestMiddlewareBatches(t *testing.T) {
	t.Parallel()
	b := connect()
	t.Cleanup(b.close)
	var acquired, failed atomic.Int64
	for name, tt := range map[string]struct {
		around  locker.Middleware
		batched bool
	}{
		"counter": {func(inner locker.Locker) locker.Locker { return counter{inner, &acquired, &failed} }, true},
		"guard":   {func(inner locker.Locker) locker.Locker { return guard{inner, "{team}:"} }, false},
	} {
		strategy := &batches{Locker: locker.Must(single.New(b.driver, single.Config{}))}
		l := locker.Must(holdfast.Wrap(tt.around(strategy), holdfast.Config{}))
		reqs := []locker.Request{{Name: "{team}:" + name + ":1"}, {Name: "{team}:" + name + ":2"}}
		if err := locker.DoAll(t.Context(), l, reqs, func(context.Context, *locker.Locks) error { return nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if batched := strategy.n.Load() > 0; batched != tt.batched {
			t.Errorf("%s: in a batch: %t", name, batched)
		}
	}
	if acquired.Load() != 2 || failed.Load() != 0 {
		t.Errorf("%d acquired, %d failed", acquired.Load(), failed.Load())
	}
}

// batches is a Locker that counts batches.
type batches struct {
	locker.Locker

	n atomic.Int64
}

func (b *batches) Unwrap() locker.Locker { return b.Locker }

func (b *batches) AcquireBatch(ctx context.Context, reqs []locker.Request) (locker.Batch, error) {
	b.n.Add(1)
	inner, _ := b.Locker.(locker.BatchAcquirer)
	return inner.AcquireBatch(ctx, reqs)
}
