package redlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// Inspect returns what a quorum agrees on.
func TestInspect(t *testing.T) {
	t.Parallel()
	type hold = locker.Request
	for what, tc := range map[string]struct {
		holds [][]hold // by node
		want  locker.State
	}{
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
	} {
		t.Run(what, func(t *testing.T) {
			inMemory(t, 5, redlock.Config{}, func(t *testing.T, c *cluster) {
				for i, holds := range tc.holds {
					for _, req := range holds {
						req.Name, req.TTL = name, time.Duration(i+1)*time.Minute
						c.nodes[i].Hold(req)
					}
				}
				got := locker.Must(c.Inspect(t.Context(), name))
				if got.Held != (got.Left > 0) {
					t.Errorf("held: %v, for %v", got.Held, got.Left)
				}
				left := got.Left
				got.Left = 0
				if tc.want.Note == "" && got.Note != "" && what == "the note of a minority" {
					t.Errorf("the note is %q, which two of five have", got.Note)
				}
				got.Note, tc.want.Note = "", ""
				if got.Holds > 0 {
					got.Holds = 1 // it depends on which nodes answer first
				}
				same(t, "state", got, tc.want)
				if len(tc.holds) == 3 && left > time.Minute {
					t.Errorf("%v are left, but of the three one holds for a minute only", left)
				}
			})
		})
	}
}

// Nodes that hang cost nothing while a quorum agrees; without a quorum of answers it is an outage.
func TestInspectWithoutAllNodes(t *testing.T) {
	inMemory(t, 3, redlock.Config{AttemptTimeout: 100 * ms}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{Owner: "me"})
		synctest.Wait()
		c.nodes[0].set(func(n *node) { n.silent = true })
		start := time.Now()
		s := locker.Must(c.Inspect(t.Context(), name))
		if took := time.Since(start); took > 0 || s.Owner != "me" {
			t.Errorf("%+v after %v", s, took)
		}
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
		same(t, "state beside an error", s, (locker.State{}))
		c.nodes[2].Forget(name) // now two say free
		_, err = c.Inspect(t.Context(), name)
		match(t, err)
		c.nodes[0].set(func(n *node) { n.silent = false })
		match(t, lock.Release(t.Context()), locker.ErrLost)
	})
}

func TestInspectOverNoInspectors(t *testing.T) {
	t.Parallel()
	plain := func() locker.Locker { return locker.Func(lockertest.New().Acquire) }
	l := locker.Must(redlock.New([]locker.Locker{plain(), plain(), lockertest.New()}, redlock.Config{}))
	_, err := l.Inspect(t.Context(), name)
	match(t, err, errors.ErrUnsupported)
	_, err = l.Inspect(t.Context(), "")
	match(t, err, locker.ErrInvalid)
}

// If the caller leaves, the error is that of its ctx, not a failure of the nodes.
func TestInspectIsCancelled(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		for _, n := range c.nodes {
			n.silent = true
		}
		cause := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*ms, func() { cancel(cause) })
		start := time.Now()
		_, err := c.Inspect(ctx, name)
		match(t, err, context.Canceled, cause)
		took(t, start, 50*ms)
		_, err = c.Inspect(t.Context(), name) // AttemptTimeout is not the caller's
		matchNot(t, err, context.DeadlineExceeded)
		for _, n := range c.nodes {
			n.set(func(n *node) { n.silent = false })
		}
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
	_, err := locker.Inspect(t.Context(), nodes[0], name)
	match(t, err)
	s := locker.Must(l.Inspect(t.Context(), name))
	same(t, "owner", s.Owner, "me")
}
