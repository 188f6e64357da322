package adapter_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// slots is one range of a reply to CLUSTER SLOTS.
func slots(from, to int64, id string) any {
	return []any{from, to, []any{"127.0.0.1", int64(7000), id}}
}

// Keys, by their slots.
const (
	in12182 = "foo"
	in5061  = "bar"
)

// A known master stays known, even if its slots change. While commands are sent, the cluster is
// asked every five seconds; if it does not answer, the last answer stays.
func TestTopology(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var base adapter.Base
		var asked atomic.Int32
		var reply atomic.Value
		reply.Store([]any{slots(0, 8191, "a"), slots(8192, 16383, "b")})
		top := adapter.NewTopology(
			func() adapter.Client { return adapter.Client{Connections: 2, Send: new(fakeServer).send} },
			func(context.Context) (any, error) {
				asked.Add(1)
				return reply.Load(), nil
			}, base.Background)
		defer top.Close()
		part := top.To(in5061)
		check.Equal(t, "the pipeline of another part of the slots", top.To(in12182) == part, false)
		synctest.Wait()
		a, b := top.To(in5061), top.To(in12182)
		if a == b || a == part {
			t.Errorf("pipelines %p and %p of two masters, %p of what was not known", a, b, part)
		}
		check.Equal(t, "the pipeline of a script without keys", top.To("") != a && top.To("") != b, true)
		check.Advance(4 * time.Second)
		top.To(in5061)
		synctest.Wait()
		check.Equal(t, "times that the cluster was asked within five seconds", asked.Load(), 1)

		reply.Store([]any{})
		check.Advance(2 * time.Second)
		check.Equal(t, "the master of a cluster that reports no slots", top.To(in5061), a)
		synctest.Wait()
		check.Equal(t, "times that the cluster was asked", asked.Load(), 2)
		check.Equal(t, "the master after that", top.To(in5061), a)

		reply.Store([]any{slots(0, 5060, "c"), slots(5061, 5061, "b"), slots(5062, 16383, "a")})
		check.Advance(time.Hour)
		check.Equal(t, "times that it was asked while nothing was sent", asked.Load(), 2)
		learn(t, top, "b")
		check.Equal(t, "the master that a slot moved to", top.To(in5061), b)
		check.Equal(t, "the master of the others", top.To(in12182), a)
		if _, _, err := top.Master(t.Context(), in5061, time.Now()); err != nil || asked.Load() != 3 {
			t.Errorf("asked %d times, %v; want that the last answer is new enough", asked.Load(), err)
		}

		for _, without := range [][]any{{slots(5062, 16383, "b")}, {slots(0, 5060, "b")}} {
			reply.Store(without)
			check.Advance(time.Second)
			if _, _, err := top.Master(t.Context(), in5061, time.Now()); err == nil {
				t.Error("a slot that nobody has got a master")
			}
			check.Equal(t, "the pipeline of a slot that nobody has", top.To(in5061), part)
		}
		reply.Store([]any{slots(8192, 16383, "b"), slots(0, 8191, "a")})
		check.Advance(time.Second)
		learn(t, top, "a")
		check.Equal(t, "the master that had no slots meanwhile", top.To(in5061), a)
		check.Equal(t, "the other", top.To(in12182), b)
		check.OK(t, base.Shutdown(nil))
	})
}

// newTopology returns a Topology of a cluster with the slots returned by ask.
func newTopology(ask func(ctx context.Context) (any, error), c adapter.Client) *adapter.Topology {
	c.Connections = 2
	return adapter.NewTopology(func() adapter.Client { return c }, ask, func(func(ctx context.Context)) bool { return false })
}

// learn asks the cluster, and demands that in5061 is at the master with an ID.
func learn(t *testing.T, top *adapter.Topology, id string) {
	t.Helper()
	got, addr, err := top.Master(t.Context(), in5061, time.Now())
	check.OK(t, err)
	check.Equal(t, "address of the master", addr, "127.0.0.1:7000")
	check.Equal(t, "master", got, id)
}

// An answer overtaken by another one changes nothing.
func TestTopologyIgnoresLateAnswers(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		ids, delays := []string{"old", "new"}, []time.Duration{3 * time.Second, 0}
		var asked atomic.Int32
		top := newTopology(func(context.Context) (any, error) {
			n := asked.Add(1) - 1
			time.Sleep(delays[n]) //nolint:forbidigo // fake time
			return []any{slots(0, 16383, ids[n])}, nil
		}, adapter.Client{Send: new(fakeServer).send})
		defer top.Close()
		late := make(chan string)
		go func() {
			id, _, _ := top.Master(t.Context(), in5061, time.Now())
			late <- id
		}()
		check.Advance(time.Second)
		learn(t, top, "new")
		p := top.To(in5061)
		check.Equal(t, "the master, by the late answer", <-late, "new")
		check.Equal(t, "the pipeline is that of before", top.To(in5061) == p, true)
	})
}

// After Close no flight waits for late answers, even at a master that lost its slots or is new.
func TestTopologyClose(t *testing.T) {
	t.Parallel()
	type test struct {
		learn time.Duration // before Close, or after it
		moved bool
	}
	check.EachInFakeTime(t, map[string]test{
		"a master":              {learn: -time.Second},
		"one that has no slots": {learn: -time.Second, moved: true},
		"one that is new":       {learn: time.Second},
	}, func(t *testing.T, tt test) {
		ended := make(chan time.Time, 1)
		id := "a"
		top := newTopology(
			func(context.Context) (any, error) {
				return []any{slots(0, 16383, id)}, nil
			},
			adapter.Client{Send: func(ctx context.Context, commands []*adapter.Command) {
				commands[0].Begin()
				<-ctx.Done()
				commands[0].Answer(nil, ctx.Err())
				ended <- time.Now()
			}})
		if tt.learn > 0 {
			top.Close()
		}
		learn(t, top, "a")
		d := &adapter.Driver{Pipelines: top}
		left := time.Now().Add(3 * time.Second)
		go func() { _, _ = d.SetNX(until(t, 3*time.Second, false), in5061, "v", time.Minute) }()
		check.Advance(time.Second)
		if tt.moved {
			id = "b"
			learn(t, top, "b")
		}
		if tt.learn < 0 {
			top.Close()
		}
		check.Within(t, "the flight's end", (<-ended).Sub(left), 0, grain)
	})
}
