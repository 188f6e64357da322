package keylock_test

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// No prefix makes a good name the key of another lock's queue or counter, or a key without a slot
// for its own.
func TestPrefixMakesNoBadKey(t *testing.T) {
	t.Parallel()
	drv := clients.OpenMemory(t, clients.NewMemory(t))
	for _, tt := range []struct{ prefix, name string }{
		{"{orders}:", "waiters"}, {"{orders}:", "fence"}, {"{orders}:w", "ake"}, {"a:fen", "ce"}, {"a}", "b"}, {"{}", "b"},
	} {
		for name, l := range map[string]locker.Locker{
			"single":    locker.Must(single.New(drv, single.Config{Prefix: tt.prefix})),
			"reentrant": locker.Must(reentrant.New(drv, reentrant.Config{Prefix: tt.prefix})),
			"rwhash":    locker.Must(rwhash.New(drv, rwhash.Config{Prefix: tt.prefix})),
			"semaphore": locker.Must(semaphore.New(drv, semaphore.Config{Permits: 1, Prefix: tt.prefix})),
		} {
			_, err := l.Acquire(t.Context(), locker.Request{Name: tt.name})
			if e, ok := errors.AsType[*locker.InvalidError](err); !ok || e.What != name+".Config.Prefix with Request.Name" {
				t.Errorf("%s: prefix %q, name %q: error %v, want an InvalidError of the prefix with the name", name, tt.prefix, tt.name, err)
			}
			if _, err := locker.Inspect(t.Context(), l, tt.name); !errors.Is(err, locker.ErrInvalid) {
				t.Errorf("%s: prefix %q, name %q: Inspect: %v", name, tt.prefix, tt.name, err)
			}
		}
	}
}
