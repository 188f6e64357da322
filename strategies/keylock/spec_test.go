package keylock_test

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// silentDriver is never asked.
type silentDriver struct{ driver.Driver }

func (silentDriver) Info() driver.Info { return driver.Info{} }

// TestSpecIsChecked checks that New names what is missing.
func TestSpecIsChecked(t *testing.T) {
	t.Parallel()
	s := driver.NewScript("return 1")
	value := func(string, string, int) string { return "" }
	for what, spec := range map[string]keylock.Spec{
		"no name":         {Acquire: s, Renew: s, Release: s},
		"no Acquire":      {Name: "x", Renew: s, Release: s},
		"no Renew":        {Name: "x", Acquire: s, Release: s},
		"no Release":      {Name: "x", Acquire: s, Renew: s},
		"no UndoResume":   {Name: "x", Acquire: s, Renew: s, Release: s, Resume: s},
		"no Resume":       {Name: "x", Acquire: s, Renew: s, Release: s, UndoResume: s},
		"no ParseValue":   {Name: "x", Acquire: s, Renew: s, Release: s, NewValue: value},
		"no ParsePermits": {Name: "x", Acquire: s, Renew: s, Release: s, Permits: 1},
	} {
		if _, err := keylock.New(silentDriver{}, keylock.Config{}, spec); !errors.Is(err, locker.ErrInvalid) {
			t.Errorf("%s: error %v; want ErrInvalid", what, err)
		}
	}
}

// TestMissingScripts checks that what an optional script is for is refused without it, and that
// nothing is sent.
func TestMissingScripts(t *testing.T) {
	t.Parallel()
	s := driver.NewScript("return 1")
	l := locker.Must(keylock.New(silentDriver{}, keylock.Config{}, keylock.Spec{Name: "x", Acquire: s, Renew: s, Release: s}))
	handle := locker.NewHandle(lease.Grant{Name: "a", Owner: "o", Token: lease.NewToken()})
	for what, req := range map[string]locker.Request{
		"RaiseFence": {Name: "a", Fenced: true},
		"Shared":     {Name: "a", Mode: locker.Shared},
		"Resume":     {Name: "a", Resume: handle},
	} {
		if _, err := l.Acquire(t.Context(), req); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("without %s: error %v", what, err)
		}
	}
	if _, err := l.Inspect(t.Context(), "a"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without Inspect: error %v", err)
	}
}
