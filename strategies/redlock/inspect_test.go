package redlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// Inspect returns what a quorum agrees on.
func TestInspect(t *testing.T) {
	type hold = locker.Request
	type test struct {
		holds [][]hold // by node
		want  locker.State
	}
	eachInMemory(t, 5, redlock.Config{}, map[string]test{
		"free":               {nil, locker.State{}},
		"held by a quorum":   {[][]hold{{{Owner: "a", Note: "n"}}, {{Owner: "a", Note: "n"}}, {{Owner: "a", Note: "n"}}}, locker.State{Held: true, Owner: "a", Note: "n", Holds: 1}},
		"held by a minority": {[][]hold{{{Owner: "a"}}, {{Owner: "a"}}}, locker.State{}},
		"shared out":         {[][]hold{{{Owner: "a"}}, {{Owner: "a"}}, {{Owner: "b"}}, {{Owner: "b"}}}, locker.State{}},
		"a quorum, and another": {
			[][]hold{{{Owner: "a"}}, {{Owner: "b"}}, {{Owner: "a"}}, {{Owner: "b"}}, {{Owner: "a"}}},
			locker.State{Held: true, Owner: "a", Holds: 1},
		},
		"the note of a minority": {
			[][]hold{{{Owner: "a", Note: "n"}}, {{Owner: "a"}}, {{Owner: "a", Note: "n"}}},
			locker.State{Held: true, Owner: "a", Holds: 1},
		},
		"readers that differ": {
			[][]hold{
				{{Owner: "a", Mode: locker.Shared}, {Owner: "b", Mode: locker.Shared}}, {{Owner: "b", Mode: locker.Shared}},
				{{Owner: "c", Mode: locker.Shared}},
			},
			locker.State{Held: true, Mode: locker.Shared, Holds: 1},
		},
		"readers of whom one is everywhere": {
			[][]hold{
				{{Owner: "a", Mode: locker.Shared}, {Owner: "b", Mode: locker.Shared}},
				{{Owner: "a", Mode: locker.Shared}, {Owner: "b", Mode: locker.Shared}}, {{Owner: "a", Mode: locker.Shared}},
			},
			locker.State{Held: true, Owner: "a", Mode: locker.Shared, Holds: 1},
		},
	}, func(t *testing.T, c *cluster, tc test) {
		for i, holds := range tc.holds {
			for _, req := range holds {
				req.Name, req.TTL = name, time.Duration(i+1)*time.Minute
				c.nodes[i].Hold(req)
			}
		}
		got := locker.Must(c.Inspect(t.Context(), name))
		check.Equal(t, "a lease is left", got.Left > 0, got.Held)
		left := got.Left
		got.Left = 0
		if tc.want.Note == "" {
			check.Equal(t, "note, which no quorum has", got.Note, "")
		}
		got.Note, tc.want.Note = "", ""
		if got.Holds > 0 {
			got.Holds = 1 // it depends on which nodes answer first
		}
		check.Equal(t, "state", got, tc.want)
		if len(tc.holds) == 3 && left > time.Minute {
			t.Errorf("%v are left, but of the three one holds for a minute only", left)
		}
	})
}

// Nodes that hang cost nothing while a quorum agrees; without a quorum of answers it is an outage.
func TestInspectWithoutAllNodes(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: 100 * ms}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me"})
		synctest.Wait()
		c.nodes[0].set(func(n *node) { n.silent = true })
		start := time.Now()
		s := locker.Must(c.Inspect(t.Context(), name))
		took(t, start, 0)
		check.Equal(t, "owner", s.Owner, "me")
		c.nodes[1].set(func(n *node) { n.silent = true })
		_, err := c.Inspect(t.Context(), name)
		match(t, err, locker.ErrUnknownOutcome)
		took(t, start, 100*ms)
		if op, ok := errors.AsType[*locker.OpError](err); !ok || op.Op != "inspect" {
			t.Errorf("%v is of another operation", err)
		}
		// One says held, one says free: the one that is silent would tell.
		c.nodes[1].set(func(n *node) { n.silent = false })
		c.nodes[1].Forget(name)
		s, err = c.Inspect(t.Context(), name)
		match(t, err, locker.ErrUnknownOutcome)
		check.Equal(t, "state beside an error", s, (locker.State{}))
		c.nodes[2].Forget(name) // now two say free
		match(t, check.ErrOf(c.Inspect(t.Context(), name)))
		c.nodes[0].set(func(n *node) { n.silent = false })
		match(t, lock.Release(t.Context()), locker.ErrLost)
	})
}

func TestInspectOverNoInspectors(t *testing.T) {
	t.Parallel()
	plain := func() locker.Locker { return locker.Func(lockertest.New().Acquire) }
	l := locker.Must(redlock.New([]locker.Locker{plain(), plain(), lockertest.New()}, redlock.Config{}))
	match(t, check.ErrOf(l.Inspect(t.Context(), name)), errors.ErrUnsupported)
	match(t, check.ErrOf(l.Inspect(t.Context(), "")), locker.ErrInvalid)
}

// If the caller leaves, the error is that of its ctx, not a failure of the nodes.
func TestInspectIsCancelled(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		setAll(c.nodes, func(n *node) { n.silent = true })
		cause := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*ms, func() { cancel(cause) })
		start := time.Now()
		_, err := c.Inspect(ctx, name)
		match(t, err, context.Canceled, cause)
		took(t, start, 50*ms)
		_, err = c.Inspect(t.Context(), name) // AttemptTimeout is not the caller's
		matchNot(t, err, context.DeadlineExceeded)
		setAll(c.nodes, func(n *node) { n.silent = false })
	})
}

// A node behind middleware is inspected, as locker.Inspect inspects it.
func TestInspectNodesBehindMiddleware(t *testing.T) {
	t.Parallel()
	var nodes []locker.Locker
	for range 3 {
		nodes = append(nodes, wraps{lockertest.New()})
	}
	l := locker.Must(redlock.New(nodes, redlock.Config{}))
	locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me"}))
	match(t, check.ErrOf(locker.Inspect(t.Context(), nodes[0], name)))
	s := locker.Must(l.Inspect(t.Context(), name))
	check.Equal(t, "owner", s.Owner, "me")
}
