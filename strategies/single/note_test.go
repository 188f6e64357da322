//realtime:ok each test runs in a bubble, by run of tools_test.go

package single_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// meanwhile is a driver that calls a function before the next script is sent.
type meanwhile struct {
	driver.Driver
	before func()
}

func (m *meanwhile) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	return m.Driver.Eval(ctx, s, keys, args)
}

// A renewal that is sent with the value from before a change of the note loses no lock, except one
// that is gone.
func TestNoteBesideRenewal(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		drv := &meanwhile{Driver: b.drv}
		l := locker.Must(single.New(drv, single.Config{}))
		for name, lost := range map[string]bool{"noted": false, "gone": true} {
			lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute}))
			drv.before = func() {
				check.OK(t, lock.SetNote(t.Context(), "new"))
				if lost {
					b.m.Del(name)
				}
			}
			until := lock.Deadline()
			sleep(time.Second)
			err := lock.Hold().Renew(t.Context())
			if errors.Is(err, locker.ErrLost) != lost || (err != nil) != lost {
				t.Errorf("%s: the renewal returned %v", name, err)
			}
			check.Equal(t, name+": the lock was renewed", lock.Deadline().After(until), !lost)
			_ = lock.Release(t.Context())
		}
		check.Equal(t, "keys that are left", strings.Join(b.m.Keys(), " "), "")
	})
}
