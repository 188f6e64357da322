package keylock_test

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Every method of a Locker answers a nil ctx with ErrInvalid.
func TestNilContext(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		_, drv := locktest.Memory(t)
		l := locker.Must(single.New(drv, single.Config{}))
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job"}))
		h := lock.Handle()
		for what, call := range map[string]func() error{
			"Acquire":       func() error { _, err := l.Acquire(nil, locker.Request{Name: "job"}); return err }, //nolint:staticcheck // nil on purpose
			"Inspect":       func() error { _, err := l.Inspect(nil, "job"); return err },                       //nolint:staticcheck // nil on purpose
			"FindHolds":     func() error { _, _, err := l.FindHolds(nil, "job"); return err },                  //nolint:staticcheck // nil on purpose
			"ReleaseHandle": func() error { return l.ReleaseHandle(nil, h) },                                    //nolint:staticcheck // nil on purpose
		} {
			if err := call(); !errors.Is(err, locker.ErrInvalid) {
				t.Errorf("%s returns %v", what, err)
			}
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
