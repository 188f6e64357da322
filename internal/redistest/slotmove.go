package redistest

import (
	"context"
	"fmt"
)

// SlotMove is a slot on its way between two nodes. Until Finish or Abort, the source answers
// commands for migrated or missing keys with ASK, and commands over these and remaining keys with
// TRYAGAIN.
type SlotMove struct {
	c        *Cluster
	slot     int
	from, to *Server
}

// BeginMove marks a slot as moving from its owner to another node. No key moves yet.
func (c *Cluster) BeginMove(ctx context.Context, slot int, to *Server) (*SlotMove, error) {
	m := &SlotMove{c: c, slot: slot, from: c.NodeForSlot(slot), to: to}
	if m.from == to {
		return nil, fmt.Errorf("redistest: slot %d is at %s already", slot, to.Addr())
	}
	if err := m.set(ctx, to, "IMPORTING", c.id(m.from)); err != nil {
		return nil, err
	}
	return m, m.set(ctx, m.from, "MIGRATING", c.id(to))
}

// MoveSlot moves a slot with its keys to another node.
func (c *Cluster) MoveSlot(ctx context.Context, slot int, to *Server) error {
	m, err := c.BeginMove(ctx, slot, to)
	if err != nil {
		return err
	}
	return m.Finish(ctx)
}

// From returns the slot's old owner.
func (m *SlotMove) From() *Server { return m.from }

// To returns the slot's new owner.
func (m *SlotMove) To() *Server { return m.to }

// Migrate moves some keys of the slot. It is no error if one is not there.
func (m *SlotMove) Migrate(ctx context.Context, keys ...string) error {
	args := []any{"MIGRATE", "127.0.0.1", m.to.Port(), "", 0, 60_000, "REPLACE"}
	if password := m.from.Password(); password != "" {
		args = append(args, "AUTH", password)
	}
	args = append(args, "KEYS")
	for _, k := range keys {
		args = append(args, k)
	}
	_, err := m.from.Do(ctx, args...)
	return err
}

// Finish migrates the remaining keys, gives the slot to its new owner and waits until every node
// knows.
func (m *SlotMove) Finish(ctx context.Context) error {
	for {
		reply, err := m.from.Do(ctx, "CLUSTER", "GETKEYSINSLOT", m.slot, 100)
		if err != nil {
			return err
		}
		var keys []string
		list, _ := reply.([]any)
		for _, k := range list {
			keys = append(keys, fmt.Sprint(k))
		}
		if len(keys) == 0 {
			break
		}
		if err := m.Migrate(ctx, keys...); err != nil {
			return err
		}
	}
	// The new owner first: the slot is never without one.
	order := []*Server{m.to, m.from}
	for _, s := range m.c.Nodes() {
		if s != m.to && s != m.from {
			order = append(order, s)
		}
	}
	for _, s := range order {
		if err := m.set(ctx, s, "NODE", m.c.id(m.to)); err != nil {
			return err
		}
	}
	m.c.mu.Lock()
	m.c.owner[m.slot] = m.to
	m.c.mu.Unlock()
	return m.c.WaitReady(ctx)
}

// Abort leaves the slot with its old owner. Migrated keys stay at the new one and can no longer be
// reached.
func (m *SlotMove) Abort(ctx context.Context) error {
	if err := m.set(ctx, m.to, "STABLE"); err != nil {
		return err
	}
	return m.set(ctx, m.from, "STABLE")
}

func (m *SlotMove) set(ctx context.Context, at *Server, args ...any) error {
	if _, err := at.Do(ctx, append([]any{"CLUSTER", "SETSLOT", m.slot}, args...)...); err != nil {
		return fmt.Errorf("redistest: SETSLOT %d %v at %s: %w", m.slot, args, at.Addr(), err)
	}
	return nil
}
