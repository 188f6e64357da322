package workload

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/reliability/history"
)

// Client runs turns, one after the other, in one goroutine.
type Client struct {
	Calls   *history.Client
	Locker  locker.Locker
	Lockers []locker.Locker // of all clients; Step.Client is an index
	Names   []Name
	Accept  func(name string, fence int64) (bool, error) // as [history.Store.Accept]
	Passes  Passes
	Sleep   func(time.Duration)
	Until   time.Time // no step begins later
}

// Turn runs a turn, and returns the error of its acquire or resume. All errors are in the history.
func (c *Client) Turn(ctx context.Context, t Turn) error {
	hold, err := c.use(ctx, t)
	if err == nil {
		c.finish(ctx, hold, t.End)
	}
	return err
}

// looks is the number of checks of a hold by its holder, between two steps.
const looks = 3

// use runs a turn except for its end.
func (c *Client) use(ctx context.Context, t Turn) (*history.Hold, error) {
	hold, err := c.obtain(ctx, t)
	if err != nil {
		return nil, err
	}
	c.Sleep(0)
	for _, s := range t.Steps {
		if !time.Now().Before(c.Until) {
			break
		}
		for range looks {
			hold.Held()
			c.Sleep(s.Pause / looks)
		}
		hold = c.step(ctx, hold, s)
	}
	return hold, nil
}

// obtain acquires, or resumes.
func (c *Client) obtain(ctx context.Context, t Turn) (*history.Hold, error) {
	name := c.Names[t.Name]
	req := locker.Request{Name: name.Name, Fenced: name.Fenced, TTL: t.TTL, MinHold: t.MinHold, Permits: t.Permits, Owner: t.Owner, NoWait: t.NoWait, MaxWait: t.MaxWait}
	if t.Shared {
		req.Mode = locker.Shared
	}
	switch {
	case t.MaxWait > 0:
	case t.Cancel:
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(t.Timeout, cancel).Stop()
	default:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.Timeout)
		defer cancel()
	}
	if t.Resume {
		if found, ok := c.Passes.Take(req.Name); ok {
			return c.Calls.Resume(ctx, c.Locker, found)
		}
	}
	return c.Calls.Acquire(ctx, c.Locker, req)
}

// step runs a step, and returns the hold to go on with.
func (c *Client) step(ctx context.Context, hold *history.Hold, s Step) *history.Hold {
	outer := ctx
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Timeout)
		defer cancel()
	}
	switch s.Do { // their errors are in the history
	case Look:
		hold.Held()
	case Write:
		c.write(hold)
	case Renew:
		_ = hold.Renew(ctx, s.TTL)
	case Downgrade:
		_ = hold.Downgrade(ctx)
	case Upgrade:
		_ = hold.Upgrade(ctx)
	case Nest:
		return c.nest(outer, hold, s)
	case Pass:
		c.Passes.Put(hold.Name(), hold.Pass())
	case Resume:
		return c.moveOn(ctx, hold, s)
	}
	return hold
}

// nest acquires again, and returns the hold to go on with.
func (c *Client) nest(ctx context.Context, hold *history.Hold, s Step) *history.Hold {
	inner, err := c.use(ctx, *s.Inner)
	if err != nil {
		return hold
	}
	if s.Swap {
		hold, inner = inner, hold
	}
	c.finish(ctx, inner, s.Inner.End)
	return hold
}

var errMovedOn = errors.New("it was taken over")

// moveOn resumes the client's own hold through another client, and returns the hold to go on with.
func (c *Client) moveOn(ctx context.Context, hold *history.Hold, s Step) *history.Hold {
	next, err := c.Calls.Resume(ctx, c.Lockers[s.Client], hold.Pass())
	if err != nil {
		return hold
	}
	hold.Held() // the old Lock does not know of the resume yet
	if s.Ask {
		_ = hold.Renew(ctx, hold.TTL())
		hold.Held()
	}
	hold.Abandon()
	hold.Lock.Hold().MarkLost(errMovedOn) // else a watchdog would renew a hold restored by a late acquire
	return next
}

func (c *Client) finish(ctx context.Context, hold *history.Hold, end End) {
	switch end {
	case Abandon:
		hold.Abandon()
		return
	case Overstay:
		c.overstay(hold)
	case Hasty:
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel()
	}
	_ = hold.Release(ctx)
}

// overstay waits for the end of the lease, gives others time to acquire the lock, and writes.
func (c *Client) overstay(hold *history.Hold) {
	over := time.NewTimer(time.Until(c.Until))
	defer over.Stop()
	select {
	case <-hold.Done():
	case <-over.C:
	}
	c.Sleep(hold.TTL() / 8)
	c.write(hold)
}

// write writes to the store, even if the lock is no longer held: the store must notice it. A
// resumed hold may have no fencing token although others of its name have one.
func (c *Client) write(hold *history.Hold) {
	if hold.Fence() != 0 {
		_ = hold.Write(c.Accept)
	}
}
