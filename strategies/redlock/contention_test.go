package redlock_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// Nodes that were too slow say ErrLost: nobody else holds anything.
func TestNodesThatAreTooLateAreNoContention(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		for _, n := range c.n {
			n.hook(fails(fmt.Errorf("%w: the answer came past the lease; the attempt was undone", locker.ErrLost), "acquire"), nil)
		}
		_, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})
		if errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("nobody holds the lock, and acquire says: %v", err)
		}
	})
}

// The same where the raising finds that the node lost its data, and another node is down.
func TestLossWhileRaisingIsNoContention(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		match(t, mint(c.n[1].Locker, 5))
		c.n[0].hook(func(what string) error {
			if what == "raise fence" {
				c.n[0].Forget(name)
			}
			return nil
		}, nil)
		c.n[2].hook(fails(errDown, "acquire"), nil)
		_, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, Fenced: true})
		if errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("nobody holds the lock, one node is down, one lost its data, and acquire says: %v", err)
		}
	})
}

// The channel is one of the holder that is named, whose release is heard of there.
func TestContentionHasAChannelOfItsHolder(t *testing.T) {
	inMemory(t, 5, redlock.Config{}, func(t *testing.T, c *cluster) {
		c.nodes[0].Hold(locker.Request{Name: name, Owner: "loser", TTL: ttl})
		for _, n := range c.nodes[1:] {
			n.Hold(locker.Request{Name: name, Owner: "holder", TTL: ttl})
		}
		_, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})
		held, ok := errors.AsType[*locker.ContentionError](err)
		if !ok {
			t.Fatalf("%v", err)
		}
		if held.Owner == "holder" && held.Channel.Name() == "wake:0" {
			t.Errorf("%q holds at nodes 1 to 4, and its release is listened for at %s, where it holds nothing", held.Owner, held.Channel.Name())
		}
	})
}
