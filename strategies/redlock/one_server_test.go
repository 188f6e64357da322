package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Three Lockers for one server are no quorum, and it is said that they are one server, not that
// another holds the lock.
func TestNodesThatAreOneServer(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]func(driver.Driver) locker.Locker{
		"single": func(drv driver.Driver) locker.Locker { return locker.Must(single.New(drv, single.Config{})) },
		"rwhash": func(drv driver.Driver) locker.Locker { return locker.Must(rwhash.New(drv, rwhash.Config{})) },
	}, func(t *testing.T, strategy func(driver.Driver) locker.Locker) {
		server := clients.NewMemory(t)
		var nodes []locker.Locker
		for range 3 {
			nodes = append(nodes, strategy(clients.OpenMemory(t, server)))
		}
		lock, err := locker.Must(redlock.New(nodes, redlock.Config{})).Acquire(t.Context(), locker.Request{Name: name})
		if lock != nil {
			t.Fatalf("one server is a quorum of three: %v", lock)
		}
		match(t, err, locker.ErrInvalid)
		matchNot(t, err, locker.ErrNotAcquired)
		if !strings.Contains(err.Error(), "one server") || driver.Transient(err) {
			t.Errorf("%v, want that the nodes are one server, for good", err)
		}
		sleep(time.Minute) // what is behind ends
	})
}

// What others hold under the same owner, at servers that share nothing, is held by others.
func TestSameOwnerIsNotOneServer(t *testing.T) {
	tests := map[string][]int{"a quorum": {0, 1}, "all": {0, 1, 2}, "all but one need": {1, 2}}
	eachInMemory(t, 3, redlock.Config{}, tests, func(t *testing.T, c *cluster, held []int) {
		for _, i := range held {
			c.nodes[i].Hold(locker.Request{Name: name, Owner: "me", TTL: time.Hour})
		}
		_, err := c.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"})
		match(t, err, locker.ErrNotAcquired)
		_, err = c.Acquire(locker.WithOwner(t.Context(), "me"), locker.Request{Name: name})
		match(t, err, locker.ErrNotAcquired)
	})
}
