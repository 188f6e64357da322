package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// Node 2 has been down for longer than what it gave lasts, and node 1 hangs: a renewal and a
// release name both, and are wrapped as one operation.
func TestErrorsOfAHoldNameTheNodes(t *testing.T) {
	inMemory(t, 3, redlock.Config{Names: []string{"a", "b", "c"}}, func(t *testing.T, c *cluster) {
		lock := c.acquire(locker.Request{})
		synctest.Wait()
		c.nodes[2].set(func(n *node) { n.down = errDown })
		for range 4 {
			sleep(ttl / 3)
			match(t, lock.Renew(t.Context(), 0))
		}
		c.nodes[1].freeze()
		for op, err := range map[string]error{"renew": lock.Renew(t.Context(), 0), "release": lock.Release(t.Context())} {
			wrapped, _ := errors.AsType[*locker.OpError](err)
			if wrapped == nil || wrapped.Op != op || strings.Count(err.Error(), "holdfast: ") != 1 {
				t.Errorf("%s: %v, want it to be wrapped once", op, err)
			}
			missed, found := errors.AsType[*redlock.QuorumError](err)
			if !found {
				t.Fatalf("%s: %v has no *QuorumError", op, err)
			}
			var nodes []int
			for _, n := range missed.Nodes {
				nodes = append(nodes, n.Node)
			}
			if !slices.Equal(nodes, []int{1, 2}) || missed.Refused != 0 {
				t.Errorf("%s: it names the nodes %v, %d refused; want 1 and 2, none", op, nodes, missed.Refused)
			}
			for _, want := range []string{"node 1 (b): no answer yet", "node 2 (c): ", errDown.Error()} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", op, err, want)
				}
			}
			if strings.Contains(strings.TrimPrefix(err.Error(), `holdfast: release "job": outcome is unknown: `), "unknown") {
				t.Errorf("%s: %v, want that there is no answer yet", op, err)
			}
		}
	})
}

// watchNodes returns a ctx whose Trace records the changes of nodes.
func watchNodes(ctx context.Context) (watched context.Context, events func() []string) {
	var mu sync.Mutex
	var all []string
	record := func(what string) func(context.Context, locktrace.NodeInfo) {
		return func(_ context.Context, i locktrace.NodeInfo) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, fmt.Sprintf("%s node %d of %d at %s, %d fail, for %v: %v", what, i.Node, i.Nodes, i.Name, i.Failing, i.For, i.Err))
		}
	}
	return locktrace.With(ctx, &locktrace.Trace{NodeFailing: record("failing"), NodeRecovered: record("recovered")}), func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func wantEvents(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("events:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A node that fails, or hangs, is reported once, and once more when it works again.
func TestNodeChangesAreReportedOnce(t *testing.T) {
	type scenario func(t *testing.T, c *cluster, ctx context.Context, events func() []string)
	eachInMemory(t, 3, redlock.Config{Names: []string{"a", "b", "c"}}, map[string]scenario{
		"it fails": func(t *testing.T, c *cluster, ctx context.Context, events func() []string) {
			cycle := func() {
				succeeds(t, locker.Must(c.Acquire(ctx, locker.Request{Name: name, TTL: ttl})).Release(ctx))
				sleep(2 * time.Second)
			}
			cycle()
			wantEvents(t, events())
			c.nodes[1].set(func(n *node) { n.down = errDown })
			cycle()
			cycle()
			const failing = "failing node 1 of 3 at b, 1 fail, for 0s: connection refused"
			wantEvents(t, events(), failing)
			c.nodes[1].set(func(n *node) { n.down = nil })
			cycle()
			cycle()
			wantEvents(t, events(), failing, "recovered node 1 of 3 at b, 0 fail, for 4s: connection refused")
		},
		"it hangs": func(t *testing.T, c *cluster, ctx context.Context, events func() []string) {
			lock := locker.Must(c.Acquire(ctx, locker.Request{Name: name, TTL: ttl}))
			synctest.Wait()
			c.nodes[1].freeze()
			for range 4 {
				sleep(5 * time.Second)
				match(t, lock.Renew(ctx, 0))
			}
			const failing = "failing node 1 of 3 at b, 1 fail, for 0s: no answer for 5s"
			wantEvents(t, events(), failing)
			c.nodes[1].melt()
			wantEvents(t, events(), failing, "recovered node 1 of 3 at b, 0 fail, for 10s: no answer for 5s")
			match(t, lock.Release(ctx))
		},
		"it fails once among others": func(t *testing.T, c *cluster, ctx context.Context, events func() []string) {
			for i := range 10 {
				c.nodes[1].set(func(n *node) { n.down = []error{nil, errDown}[i%2] })
				lock := locker.Must(c.Acquire(ctx, locker.Request{Name: name, TTL: ttl}))
				synctest.Wait()
				succeeds(t, lock.Release(ctx))
				sleep(100 * ms)
			}
			wantEvents(t, events())
		},
	}, func(t *testing.T, c *cluster, run scenario) {
		ctx, events := watchNodes(t.Context())
		run(t, c, ctx, events)
	})
}

// A callback that blocks holds up no lock, and what cancels itself out meanwhile is not reported.
func TestBlockedNodeCallbackHoldsUpNothing(t *testing.T) {
	inMemory(t, 3, redlock.Config{Names: []string{"a", "b", "c"}}, func(t *testing.T, c *cluster) {
		blocked := make(chan struct{})
		var mu sync.Mutex
		reports := 0
		report := func(context.Context, locktrace.NodeInfo) {
			mu.Lock()
			reports++
			mu.Unlock()
			<-blocked
		}
		ctx := locktrace.With(t.Context(), &locktrace.Trace{NodeFailing: report, NodeRecovered: report})
		for i := range 21 {
			c.nodes[1].set(func(n *node) { n.down = []error{errDown, nil}[i%2] })
			start := time.Now()
			match(t, locker.Must(c.Acquire(ctx, locker.Request{Name: name, TTL: ttl})).Release(ctx))
			took(t, start, 0)
			synctest.Wait()
			sleep(2 * time.Second)
		}
		close(blocked)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		check.Equal(t, "reports, of which the first alone is due", reports, 1)
	})
}
