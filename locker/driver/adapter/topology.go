package adapter

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// slotsAge is after how long a cluster is asked again, if commands are sent.
const slotsAge = 5 * time.Second

// Topology has a [Pipeline] to each master of a cluster, for a client that does not report the
// server of a command. It asks the cluster for its slots every five seconds, if commands are sent.
// Until it knows them, and if a slot has no master, commands go by themselves, over pipelines for
// parts of the slots.
type Topology struct {
	ask        func(ctx context.Context) (reply any, err error)
	background func(f func(ctx context.Context)) bool
	client     func() Client

	parts   Pipelines
	masters atomic.Pointer[masters]
	due     atomic.Int64 // when to ask again, in Unix nanoseconds

	learning sync.Mutex // held to change masters and closed
	closed   bool
}

// masters are those of a cluster at a time. They are not changed.
type masters struct {
	slots slots
	byID  map[string]*Pipeline // also of former masters
	asked time.Time
}

// NewTopology returns a Topology. client returns the client of one more master. ask sends CLUSTER
// SLOTS to a node, and returns the client's decoded reply; one without slots counts as none.
// background is [Base.Background].
func NewTopology(
	client func() Client, ask func(ctx context.Context) (reply any, err error),
	background func(f func(ctx context.Context)) bool,
) *Topology {
	part := client()
	part.Single = true // the slots of one master are not known
	return &Topology{ask: ask, background: background, client: client, parts: NewSlotPipelines(part)}
}

// To returns the pipeline to the master of key.
func (t *Topology) To(key string) *Pipeline {
	due, now := t.due.Load(), time.Now()
	if now.UnixNano() >= due && t.due.CompareAndSwap(due, now.Add(slotsAge).UnixNano()) {
		t.background(func(ctx context.Context) { _, _ = t.learn(ctx) })
	}
	if m := t.masters.Load(); m != nil && key != "" {
		if r, found := m.slots.of(key); found {
			return m.byID[r.id]
		}
	}
	return t.parts.To(key)
}

var (
	errNoMaster = errors.New("driver: the slot has no master")
	errNoSlots  = errors.New("driver: the node knows no slots of the cluster")
)

// Master returns the master of key's slot, from an answer of the cluster newer than fresh: the ID of
// the node, or its address if the cluster reports no ID, and the address, "host:port". addr is empty
// if the cluster does not report the host.
func (t *Topology) Master(ctx context.Context, key string, fresh time.Time) (id, addr string, err error) {
	m := t.masters.Load()
	if m == nil || m.asked.Before(fresh) {
		if m, err = t.learn(ctx); err != nil {
			return "", "", err
		}
	}
	r, found := m.slots.of(key)
	if !found {
		return "", "", errNoMaster
	}
	return r.id, r.addr, nil
}

// learn asks the cluster. Known masters keep their pipelines, also while they have no slots.
func (t *Topology) learn(ctx context.Context) (*masters, error) {
	asked := time.Now()
	reply, err := t.ask(ctx)
	if err != nil {
		return nil, err
	}
	slots := parseSlots(reply)
	if len(slots) == 0 {
		return nil, errNoSlots
	}
	t.learning.Lock()
	defer t.learning.Unlock()
	m := &masters{slots: slots, byID: map[string]*Pipeline{}, asked: asked}
	if before := t.masters.Load(); before != nil {
		if before.asked.After(asked) {
			return before, nil // this answer is late
		}
		m.byID = maps.Clone(before.byID)
	}
	for _, r := range slots {
		if m.byID[r.id] == nil {
			m.byID[r.id] = NewPipeline(t.client())
			if t.closed {
				m.byID[r.id].Close()
			}
		}
	}
	t.masters.Store(m)
	t.due.Store(asked.Add(slotsAge).UnixNano())
	return m, nil
}

// Close frees the timers of the pipelines.
func (t *Topology) Close() {
	t.parts.Close()
	t.learning.Lock()
	defer t.learning.Unlock()
	t.closed = true
	if m := t.masters.Load(); m != nil {
		for _, p := range m.byID {
			p.Close()
		}
	}
}
