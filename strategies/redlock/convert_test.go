package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// A conversion whose answers come after its ctx or AttemptTimeout has ended, or never and cannot be
// undone, keeps every node lock.
func TestConversionThatIsCutOffKeepsTheLock(t *testing.T) {
	unknown := fmt.Errorf("cut: %w", locker.ErrUnknownOutcome)
	type test struct {
		mode        locker.Mode // before
		takes, left time.Duration
		after       func(string) error
	}
	eachInHooked(t, 3, redlock.Config{}, map[string]test{
		"a downgrade by its ctx":        {locker.Exclusive, 50 * ms, 10 * ms, nil},
		"a downgrade by AttemptTimeout": {locker.Exclusive, 1500 * ms, time.Hour, nil},
		"an upgrade of unknown outcome": {locker.Shared, 50 * ms, 10 * ms, fails(unknown, "convert")},
	}, func(t *testing.T, c *hookedCluster, tt test) {
		lock := c.take(t, locker.Request{Owner: "me", Mode: tt.mode})
		hookAll(c.n, slow(tt.takes, "convert"), tt.after)
		ctx, cancel := context.WithTimeout(t.Context(), tt.left)
		defer cancel()
		convert := lock.Downgrade
		if tt.mode == locker.Shared {
			convert = lock.Upgrade
		}
		err := convert(ctx)
		wantError(t, "the conversion, which is cut off,", err)
		sleep(2 * time.Second)
		if lock.Err() == nil && len(c.at("me")) < 2 {
			t.Errorf("%v; the Lock says it is held for %v more, and is at nodes %v", err, time.Until(lock.Deadline()), c.at("me"))
		}
		c.excludes(t, lock, "after a conversion that was cut off")
	})
}

// Node 2 missed a long renewal, and nodes 1 and 2 the downgrade: the two that carry the Deadline go
// on doing so.
func TestDeadlineHoldsAfterAFailedDowngrade(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me"})
		c.n[2].hook(fails(errDown, "renew"), nil)
		match(t, lock.Renew(t.Context(), time.Hour))
		hookAll(c.n[1:], fails(errDown, "convert"), nil)
		wantError(t, "the downgrade, which misses the quorum,", lock.Downgrade(t.Context()))
		synctest.Wait()
		hookAll(c.n[1:], nil, nil)
		sleep(31 * time.Second) // C's lease of 30 s is over
		c.excludes(t, lock, "after a downgrade that missed the quorum")
	})
}

// A node whose lease ends before the Deadline is renewed before it is upgraded: the quorum may need
// it.
func TestUpgradeLastsUntilTheDeadline(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
		c.n[2].hook(fails(errDown, "renew"), nil)
		match(t, lock.Renew(t.Context(), time.Hour))
		c.n[2].hook(nil, nil)
		c.n[1].hook(fails(errDown, "convert"), nil)
		succeeds(t, lock.Upgrade(t.Context()))
		check.Equal(t, "mode", lock.Mode(), locker.Exclusive)
		c.n[1].hook(nil, nil)
		sleep(31 * time.Second)
		c.excludes(t, lock, "after an upgrade that won")
	})
}

// A node that refused long ago, when the lock was to be restored there, says nothing about a
// conversion.
func TestContentionOfAConversionIsItsOwn(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		c.n[2].Hold(locker.Request{Name: name, Owner: "stray", TTL: time.Second})
		lock := c.take(t, locker.Request{Owner: "me"})
		sleep(5 * time.Second) // the stray has long gone
		c.n[1].hook(fails(errDown, "convert"), nil)
		if err := lock.Downgrade(t.Context()); errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("nobody else holds anything, one node is down, and downgrade says: %v", err)
		}
	})
}

// noneIs demands that no node holds in mode.
func (c *hookedCluster) noneIs(t *testing.T, mode locker.Mode) {
	t.Helper()
	if modes := c.modes(); slices.Contains(modes, mode) {
		t.Errorf("the nodes are %v, want none %v", modes, mode)
	}
}

// convertless are nodes that hold in any mode, and convert nothing.
func convertless(n ...*hooked) {
	for _, n := range n {
		n.hook(fails(errors.ErrUnsupported, "convert"), nil)
	}
}

// If the nodes do not support conversions, neither does the quorum, and nothing changes.
func TestConversionsThatNoNodeHas(t *testing.T) {
	tests := map[string]locker.Mode{"exclusive": locker.Exclusive, "shared": locker.Shared}
	eachInHooked(t, 3, redlock.Config{}, tests, func(t *testing.T, c *hookedCluster, mode locker.Mode) {
		convertless(c.n...)
		lock := c.take(t, locker.Request{Owner: "me", Mode: mode})
		for op, convert := range map[string]func(context.Context) error{"upgrade": lock.Upgrade, "downgrade": lock.Downgrade} {
			only(t, convert(t.Context()), errors.ErrUnsupported, locker.ErrUnknownOutcome, locker.ErrNotHeld, locker.ErrNotAcquired)
			if lock.Mode() != mode || lock.Err() != nil {
				t.Errorf("%v, Err %v after an %s that there is not", lock, lock.Err(), op)
			}
		}
		match(t, lock.Renew(t.Context(), 0))
		match(t, lock.Release(t.Context()))
	})
}

// A node that has not answered the acquire yet does not turn an unsupported downgrade into one of
// unknown outcome: the lock would be shared from then on, and could be restored nowhere.
func TestDowngradeThatNoNodeHasBesideAHungOne(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		convertless(c.n...)
		c.n[2].hook(slow(10*time.Second, "acquire"), nil)
		lock := c.take(t, locker.Request{Owner: "me"})
		only(t, lock.Downgrade(t.Context()), errors.ErrUnsupported, locker.ErrUnknownOutcome)
		if lock.Mode() != locker.Exclusive || lock.Err() != nil {
			t.Errorf("%v, Err %v after a downgrade that there is not", lock, lock.Err())
		}
		sleep(10 * time.Second)
		c.wantAt(t, 3)
		c.excludes(t, lock, "after a downgrade that there is not")
		match(t, lock.Release(t.Context()))
	})
}

// Too few of some mixed nodes support a downgrade: the lock stays exclusive, even at a node that
// was converted.
func TestDowngradeOfMixedNodes(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		convertless(c.n[:2]...)
		lock := c.take(t, locker.Request{Owner: "me"})
		only(t, lock.Downgrade(t.Context()), errors.ErrUnsupported, locker.ErrUnknownOutcome)
		succeeds(t, lock.Renew(t.Context(), 0))
		if lock.Mode() != locker.Exclusive || slices.Contains(c.modes(), locker.Shared) {
			t.Errorf("%v, and the nodes are %v after a downgrade that cannot be", lock, c.modes())
		}
		c.excludes(t, lock, "after a downgrade that cannot be")
		match(t, lock.Release(t.Context()))
	})
}

// An upgrade of an exclusive lock succeeds if the nodes support conversions, and finds a lost hold,
// as at one node.
func TestUpgradeOfAnExclusiveLock(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Fenced: true})
		fence := lock.Fence()
		match(t, lock.Upgrade(t.Context()))
		if lock.Mode() != locker.Exclusive || lock.Fence() != fence || lock.Err() != nil {
			t.Errorf("%v with fence %d, Err %v; the fence was %d", lock, lock.Fence(), lock.Err(), fence)
		}
		unknown := fmt.Errorf("cut: %w", locker.ErrUnknownOutcome)
		hookAll(c.n, nil, fails(unknown, "convert"))
		match(t, lock.Upgrade(t.Context()), locker.ErrUnknownOutcome)
		match(t, lock.Renew(t.Context(), 0))
		c.excludes(t, lock, "after an upgrade of unknown outcome of what is exclusive")
		for _, n := range c.n {
			n.hook(nil, nil)
			n.Forget(name)
		}
		match(t, lock.Upgrade(t.Context()), locker.ErrLost)
	})
}

// modes is how the nodes are held.
func (c *hookedCluster) modes() (all []locker.Mode) {
	for _, n := range c.n {
		s, _ := n.Inspect(bg, name)
		all = append(all, s.Mode)
	}
	return all
}

// An upgrade that misses the quorum is undone where it succeeded, at once or with the next renewal.
func TestMissedUpgradeIsTakenBack(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
		c.n[0].hook(nil, nil)
		for _, n := range c.n[1:] {
			n.Hold(locker.Request{Name: name, Owner: "reader", Mode: locker.Shared, TTL: time.Minute})
		}
		match(t, lock.Upgrade(t.Context()), locker.ErrNotAcquired)
		synctest.Wait()
		if slices.Contains(c.modes(), locker.Exclusive) || lock.Mode() != locker.Shared || len(c.at("me")) == 0 {
			t.Errorf("modes %v after an upgrade that was refused, %v", c.modes(), lock)
		}
		asked := 0
		c.n[0].hook(func(what string) error { // the upgrade is executed, the taking back is not
			if asked++; what == "convert" && asked > 1 {
				return errDown
			}
			return nil
		}, nil)
		match(t, lock.Upgrade(t.Context()), locker.ErrNotAcquired)
		synctest.Wait()
		if c.modes()[0] != locker.Exclusive {
			t.Fatal("node 0 is meant to be left exclusive")
		}
		c.n[0].hook(nil, nil)
		succeeds(t, lock.Renew(t.Context(), 0))
		c.noneIs(t, locker.Exclusive)
		match(t, lock.Release(t.Context()))
	})
}

// A node that an upgrade missed does not count until a renewal has upgraded it; one that a
// downgrade missed does.
func TestRenewalConvertsWhatWasMissed(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Mode: locker.Shared})
		c.n[2].hook(fails(errDown, "convert"), nil)
		succeeds(t, lock.Upgrade(t.Context()))
		c.n[1].hook(fails(errDown, "renew"), nil)
		wantError(t, "a renewal of node 0 alone, which is exclusive,", lock.Renew(t.Context(), 0))
		hookAll(c.n[1:], nil, nil)
		succeeds(t, lock.Renew(t.Context(), 0))
		c.noneIs(t, locker.Shared)
		hookAll(c.n[1:], fails(errDown, "convert"), nil)
		match(t, lock.Downgrade(t.Context()), locker.ErrUnknownOutcome, errDown)
		match(t, lock.Renew(t.Context(), 0))
		synctest.Wait() // it has tried once more
		if lock.Mode() != locker.Shared || lock.Err() != nil {
			t.Errorf("%v after a downgrade that missed the quorum", lock)
		}
		hookAll(c.n[1:], nil, nil)
		succeeds(t, lock.Downgrade(t.Context())) // or the next renewal
		c.noneIs(t, locker.Exclusive)
		match(t, lock.Release(t.Context()))
	})
}
