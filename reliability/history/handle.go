package history

import (
	"context"

	"github.com/holdfast-go/holdfast/locker"
)

// Passed is a hold for another client, in any process, to take over.
type Passed struct {
	Hold   string
	Handle string // encoded
}

// Pass returns the argument for [Client.Resume] to take the hold over. The Hold can still be used:
// its next command finds the take-over.
func (h *Hold) Pass() Passed { return Passed{h.id, h.Handle().Encode()} }

// Resume takes over a hold through l.
func (c *Client) Resume(ctx context.Context, l locker.Locker, p Passed) (*Hold, error) {
	handle, err := locker.ParseHandle(p.Handle)
	if err != nil {
		return nil, err
	}
	e := c.begin(Event{
		Name: handle.Name(), Kind: Resume, Over: p.Hold, Owner: handle.Owner(), Shared: handle.Mode() == locker.Shared,
		TTL: handle.Info().TTL,
	})
	lock, err := locker.Resume(ctx, l, handle)
	if err != nil {
		c.end(e, err)
		return nil, err
	}
	e.Deadline, e.Fence = c.r.At(lock.Deadline()), lock.Fence()
	c.end(e, nil)
	return &Hold{Lock: lock, c: c, id: e.Hold, owner: e.Owner}, nil
}
