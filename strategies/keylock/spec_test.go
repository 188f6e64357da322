package keylock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/keylock"
	"github.com/holdfast-go/holdfast/strategies/redisson"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// silentDriver is never asked.
type silentDriver struct{ driver.Driver }

func (silentDriver) Info() driver.Info                     { return driver.Info{} }
func (silentDriver) Delivery(string) driver.Delivery       { return driver.DeliveryPlain }
func (silentDriver) UntilClose() context.Context           { return context.Background() }
func (silentDriver) BeginAcquire() (end func(), err error) { return func() {}, nil }

// TestSpecIsChecked checks that New names the missing field.
func TestSpecIsChecked(t *testing.T) {
	t.Parallel()
	s := driver.NewScript("return 1")
	value := func(string, string, int) string { return "" }
	names := func(string) (string, string, bool) { return "", "", false }
	for what, spec := range map[string]keylock.Spec{
		"no name":                            {Acquire: s, Renew: s, Release: s},
		"no Acquire":                         {Name: "x", Renew: s, Release: s},
		"no Renew":                           {Name: "x", Acquire: s, Release: s},
		"no Release":                         {Name: "x", Acquire: s, Renew: s},
		"no UndoResume":                      {Name: "x", Acquire: s, Renew: s, Release: s, Resume: s},
		"no Resume":                          {Name: "x", Acquire: s, Renew: s, Release: s, UndoResume: s},
		"no ParseValue":                      {Name: "x", Acquire: s, Renew: s, Release: s, NewValue: value},
		"a queue beside the names of others": {Name: "x", Acquire: s, Renew: s, Release: s, Queue: true, Siblings: names},
		"no ParsePermits":                    {Name: "x", Acquire: s, Renew: s, Release: s, Permits: 1},
	} {
		check.Error(t, what, check.ErrOf(keylock.New(silentDriver{}, keylock.Config{}, spec)), locker.ErrInvalid)
	}
}

// TestMissingScripts checks that an operation without its optional script is refused unsent.
func TestMissingScripts(t *testing.T) {
	t.Parallel()
	s := driver.NewScript("return 1")
	l := locker.Must(keylock.New(silentDriver{}, keylock.Config{}, keylock.Spec{Name: "x", Acquire: s, Renew: s, Release: s}))
	handle := locker.NewLock(context.Background(), lease.HoldInfo{Name: "a", Owner: "o", Token: lease.NewToken()}, nil).Handle()
	for what, req := range map[string]locker.Request{
		"RaiseFence": {Name: "a", Fenced: true},
		"Shared":     {Name: "a", Mode: locker.Shared},
		"Resume":     {Name: "a", Resume: handle},
	} {
		check.Error(t, "without "+what, check.ErrOf(l.Acquire(t.Context(), req)), errors.ErrUnsupported)
	}
	check.Error(t, "without Inspect", check.ErrOf(l.Inspect(t.Context(), "a")), errors.ErrUnsupported)
}

// No prefix turns a valid name into the key of another lock's queue or counter, or into a key
// without its own slot.
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
			"redisson":  locker.Must(redisson.New(drv, redisson.Config{Prefix: tt.prefix})),
		} {
			_, err := l.Acquire(t.Context(), locker.Request{Name: tt.name})
			if e, ok := errors.AsType[*locker.InvalidError](err); !ok || e.What != name+".Config.Prefix with Request.Name" {
				t.Errorf("%s: prefix %q, name %q: error %v, want an InvalidError of the prefix with the name", name, tt.prefix, tt.name, err)
			}
			check.Error(t, "Inspect", check.ErrOf(locker.Inspect(t.Context(), l, tt.name)), locker.ErrInvalid)
		}
	}
}
