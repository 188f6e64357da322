package keylock_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// splitSlot is a driver over a slot on the move: the lock and its queue are on two nodes.
type splitSlot struct{ driver.Driver }

func (d splitSlot) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	if strings.HasSuffix(keys[len(keys)-1], sibling.WaitersSuffix) {
		return driver.Reply{}, &driver.ServerError{Text: "TRYAGAIN Multiple keys request during rehashing of slot"}
	}
	return d.Driver.Eval(ctx, s, keys, args)
}

func (d splitSlot) EvalAcked(
	ctx context.Context, s *driver.Script, keys, args []string, replicas int, _ time.Duration,
) (driver.Reply, int, error) {
	reply, err := d.Eval(ctx, s, keys, args)
	return reply, replicas, err
}

// While the keys of the lock and of its queue are on two nodes, locks work without the queue.
func TestSlotOnTheMove(t *testing.T) {
	t.Parallel()
	tests := map[string]single.Config{"default": {}, "fair": {Fair: true}, "replicas": {MinReplicas: 1}}
	check.EachInFakeTime(t, tests, func(t *testing.T, cfg single.Config) {
		l := locker.Must(single.New(splitSlot{clients.OpenMemory(t, clients.NewMemory(t))}, cfg))
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job", TTL: time.Minute}))
		refusal := locktest.Refusal(t, check.ErrOf(l.Acquire(t.Context(), locker.Request{Name: "job"})))
		check.AtLeast(t, "time that is left", refusal.Left, 1)
		check.OK(t, lock.Release(t.Context()))
	})
}

// An acquire that is abandoned while the slot is on the move is cleaned up without the queue.
func TestCleanUpOnSlotOnTheMove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &faultdriver.Driver{Driver: splitSlot{clients.OpenMemory(t, clients.NewMemory(t))}, T: t}
		l := locker.Must(single.New(d, single.Config{}))
		d.Then(faultdriver.Fault{Lose: true}, faultdriver.Fault{Hang: true})
		req := locker.Request{Name: "job", TTL: time.Minute, NoWait: true}
		check.Is(t, check.ErrOf(l.Acquire(t.Context(), req)), locker.ErrUnknownOutcome)
		locktest.Sleep(time.Second)
		locktest.Release(t, locker.Must(l.Acquire(t.Context(), req)))
	})
}

// slowSplitSlot answers its first TRYAGAIN too late for another send in the same attempt.
type slowSplitSlot struct {
	splitSlot
	answered bool
}

func (d *slowSplitSlot) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	if err := ctx.Err(); err != nil {
		return driver.Reply{}, driver.NotSent(err)
	}
	reply, err := d.splitSlot.Eval(ctx, s, keys, args)
	if err != nil && !d.answered {
		d.answered = true
		time.Sleep(time.Second) //nolint:forbidigo // fake time
	}
	return reply, err
}

// A release refused for its queue by a slow server uses its ReleaseTimeout.
func TestSlowSlotOnTheMove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &slowSplitSlot{splitSlot: splitSlot{clients.OpenMemory(t, clients.NewMemory(t))}}
		l := locker.Must(single.New(d, single.Config{AttemptTimeout: time.Second, ReleaseTimeout: 10 * time.Second}))
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job", TTL: time.Minute}))
		check.Must(t, lock.Release(t.Context()))
		locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job", TTL: time.Minute}))
	})
}
