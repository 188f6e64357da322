package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// cache keeps expensive values in a store shared by several processes. They read side by side, and
// one computes a missing value.
type cache struct {
	locks   locker.Locker // of rwhash
	load    func(ctx context.Context, key string) (value string, ok bool, err error)
	store   func(ctx context.Context, key, value string) error
	compute func(ctx context.Context, key string) (string, error)
}

// get returns the value of key, and computes it if it is missing.
func (c cache) get(ctx context.Context, key string) (value string, err error) {
	var ok, upgraded bool
	err = locker.Do(ctx, c.locks, locker.Request{Name: "cache:" + key, Mode: locker.Shared}, func(ctx context.Context, lock *locker.Lock) error {
		if value, ok, err = c.load(ctx, key); ok || err != nil {
			return err
		}
		// Nobody else reads: this reader becomes the writer, and nobody writes in between. If others
		// read, it fails at once: two readers that waited for each other would wait for ever.
		switch err := lock.Upgrade(ctx); {
		case errors.Is(err, locker.ErrNotAcquired):
			return nil
		case err != nil:
			return err
		}
		upgraded = true
		value, err = c.fill(ctx, key)
		return err
	})
	if err != nil || ok || upgraded {
		return value, err
	}
	// The shared hold is released by now, so the lock can become free for a writer.
	err = locker.Do(ctx, c.locks, locker.Request{Name: "cache:" + key}, func(ctx context.Context, _ *locker.Lock) error {
		if value, ok, err = c.load(ctx, key); ok || err != nil {
			return err // another process was faster
		}
		value, err = c.fill(ctx, key)
		return err
	})
	return value, err
}

// fill computes and stores a value. The caller holds the lock alone.
func (c cache) fill(ctx context.Context, key string) (string, error) {
	value, err := c.compute(ctx, key)
	if err == nil {
		err = c.store(ctx, key, value)
	}
	return value, err
}

// newCache returns a cache over a map, and counts the computed values.
func newCache(b *backend, computed *atomic.Int64) cache {
	var values sync.Map
	strategy := locker.Must(rwhash.New(b.driver, rwhash.Config{}))
	return cache{
		locks: locker.Must(holdfast.Wrap(strategy, holdfast.Config{})),
		load: func(_ context.Context, key string) (string, bool, error) {
			value, ok := values.Load(key)
			text, _ := value.(string)
			return text, ok, nil
		},
		store: func(_ context.Context, key, value string) error { values.Store(key, value); return nil },
		compute: func(_ context.Context, key string) (string, error) {
			computed.Add(1)
			return "report of " + key, nil
		},
	}
}

// A value is computed once, and read by all.
func Example_cache() {
	b := connect()
	defer b.close()
	var computed atomic.Int64
	c := newCache(b, &computed)
	for range 3 {
		fmt.Println(c.get(context.Background(), "march"))
	}
	fmt.Println("computed:", computed.Load())
	// Output:
	// report of march <nil>
	// report of march <nil>
	// report of march <nil>
	// computed: 1
}

// Many callers missing a value at once compute it once, even beside other readers.
func TestCache(t *testing.T) {
	t.Parallel()
	b := connect()
	t.Cleanup(b.close)
	var computed atomic.Int64
	c := newCache(b, &computed)
	reader := locker.Must(c.locks.Acquire(t.Context(), locker.Request{Name: "cache:march", Mode: locker.Shared}))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if value, err := c.get(t.Context(), "march"); value != "report of march" || err != nil {
				t.Errorf("%q, %v", value, err)
			}
		})
	}
	check.OK(t, reader.Release(t.Context()))
	all.Wait()
	check.Equal(t, "computations", computed.Load(), 1)
}
