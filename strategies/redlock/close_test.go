package redlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"

	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// closable is a quorum over three servers whose drivers fail by plan, and are closed by the test.
type closable struct {
	*redlock.Locker
	servers []*miniredis.Miniredis
	drivers []*faultdriver.Driver
}

// onMiniredis returns a server in memory, for fake time, and a driver over it.
func onMiniredis(t *testing.T) (*miniredis.Miniredis, driver.Driver) {
	t.Helper()
	m := clients.NewMemory(t)
	return m, clients.OpenMemory(t, m)
}

// inClosable runs f in fake time.
func inClosable(t *testing.T, cfg redlock.Config, f func(t *testing.T, c *closable)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &closable{}
		var nodes []locker.Locker
		for range 3 {
			m, inner := onMiniredis(t)
			drv := &faultdriver.Driver{Driver: inner, T: t}
			c.servers, c.drivers = append(c.servers, m), append(c.drivers, drv)
			nodes = append(nodes, locker.Must(single.New(drv, single.Config{})))
		}
		c.Locker = locker.Must(redlock.New(nodes, cfg))
		f(t, c)
		sleep(time.Hour)
	})
}

// close closes all drivers, at once, as a program does that ends, and returns how long that took.
func (c *closable) close() time.Duration {
	start := time.Now()
	done := make(chan struct{})
	for _, drv := range c.drivers {
		go func() {
			_ = drv.Close()
			done <- struct{}{}
		}()
	}
	for range c.drivers {
		<-done
	}
	return time.Since(start)
}

// at is at which servers there is a key.
func (c *closable) at() (where []int) {
	for i, m := range c.servers {
		if m.Exists(name) {
			where = append(where, i)
		}
	}
	return where
}

// A caller who leaves and closes the drivers at once leaves nothing behind: the node locks are
// being released by then, and the nodes clean up what has an unknown outcome, for which Close
// waits.
func TestNothingStaysWhereTheCallerLeavesAndCloses(t *testing.T) {
	t.Parallel()
	for what, fault := range map[string]faultdriver.Fault{
		"late answer": {Delay: 200 * ms},
		"no answer":   {Hang: true},
	} {
		t.Run(what, func(t *testing.T) {
			inClosable(t, redlock.Config{Quorum: 3}, func(t *testing.T, c *closable) {
				match(t, locker.Must(c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})).Release(t.Context()))
				c.drivers[2].Then(fault)
				ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
				defer cancel()
				start := time.Now()
				_, err := c.Acquire(ctx, locker.Request{Name: name, TTL: ttl})
				match(t, err, context.DeadlineExceeded)
				if took := time.Since(start); took > 120*ms {
					t.Errorf("it returned after %v, want soon after its ctx ended", took)
				}
				took := c.close()
				if at := c.at(); len(at) > 0 || took > 4*time.Second {
					t.Errorf("after the drivers were closed, in %v, keys are at %v", took, at)
				}
			})
		})
	}
}
