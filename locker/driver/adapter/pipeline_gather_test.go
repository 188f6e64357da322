//nolint:forbidigo // fake time
package adapter_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// pipelines chooses a pipeline by a key.
type pipelines map[string]*adapter.Pipeline

func (p pipelines) To(key string) *adapter.Pipeline { return p[key] }

func (p pipelines) Close() {
	for _, one := range p {
		one.Close()
	}
}

// gatheredCall is one call of a Gathering.
type gatheredCall struct {
	after    time.Duration // when it sends, or ends if it sends nothing
	to       string        // the server; "": it sends nothing
	patience time.Duration // until its ctx ends; 0: an hour
	again    bool          // it sends a second command
}

// Commands of calls that are made together wait until each call has sent one or has ended, for a
// millisecond at most. Those to one server take one flight.
func TestGathering(t *testing.T) {
	t.Parallel()
	const us = time.Microsecond
	type test struct {
		calls []gatheredCall
		want  []string // "server: commands at time"; none: the client sends one by one, all at once
	}
	check.EachInFakeTime(t, map[string]test{
		"one":           {[]gatheredCall{{to: "x"}}, []string{"x: 1 at 0s"}},
		"at once":       {slices.Repeat([]gatheredCall{{to: "x"}}, 8), []string{"x: 8 at 0s"}},
		"two flights":   {slices.Repeat([]gatheredCall{{to: "x"}}, 40), []string{"x: 32 at 0s", "x: 8 at 0s"}},
		"several times": {[]gatheredCall{{to: "x"}, {after: 200 * us, to: "x"}, {after: 700 * us, to: "x"}}, []string{"x: 3 at 700µs"}},
		"two servers":   {[]gatheredCall{{to: "x"}, {to: "y"}, {after: 700 * us, to: "x"}, {to: "y"}}, []string{"x: 2 at 700µs", "y: 2 at 700µs"}},
		"one late":      {[]gatheredCall{{to: "x"}, {to: "x"}, {after: 5000 * us, to: "x"}}, []string{"x: 1 at 5ms", "x: 2 at 1ms"}},
		"one ends":      {[]gatheredCall{{to: "x"}, {to: "x"}, {after: 300 * us}}, []string{"x: 2 at 300µs"}},
		"one gives up":  {[]gatheredCall{{to: "x"}, {to: "x", patience: 100 * us}, {after: 300 * us, to: "x"}}, []string{"x: 2 at 300µs"}},
		"one goes on":   {[]gatheredCall{{to: "x", again: true}, {to: "x"}}, []string{"x: 1 at 500µs", "x: 2 at 0s"}},
		"one goes on while one is late": {
			[]gatheredCall{{to: "x", again: true}, {to: "x"}, {after: 5000 * us}}, []string{"x: 1 at 2ms", "x: 2 at 1ms"},
		},
		"one by one": {calls: slices.Repeat([]gatheredCall{{to: "x"}}, 8)},
	}, func(t *testing.T, tt test) {
		single := tt.want == nil
		if single {
			tt.want = slices.Repeat([]string{"x: 1 at 0s"}, len(tt.calls))
		}
		var mu sync.Mutex
		var flights []string
		start := time.Now()
		servers := pipelines{}
		for _, name := range []string{"x", "y"} {
			s := fakeServer{answer: func(*adapter.Command) any { return "OK" }}
			servers[name] = adapter.NewPipeline(adapter.Client{Connections: 10, Single: single, Inline: driver.Urgent, Send: func(ctx context.Context, c []*adapter.Command) {
				mu.Lock()
				flights = append(flights, fmt.Sprintf("%s: %d at %v", name, len(c), time.Since(start)))
				mu.Unlock()
				s.send(ctx, c)
			}})
		}
		defer servers.Close()
		d := &adapter.Driver{Pipelines: servers}
		g := driver.NewGathering(len(tt.calls))
		var all sync.WaitGroup
		for _, c := range tt.calls {
			all.Go(func() {
				parent, cancel := context.WithTimeout(t.Context(), cmp.Or(c.patience, time.Hour))
				defer cancel()
				ctx, leave := g.Join(parent)
				defer leave()
				time.Sleep(c.after)
				if c.to == "" {
					return
				}
				_, err := d.SetNX(ctx, c.to, "v", time.Second)
				if c.patience > 0 {
					check.Error(t, "a call that gives up", err, driver.ErrNotSent, context.DeadlineExceeded)
					return
				}
				check.OK(t, err)
				if c.again {
					check.OK(t, check.ErrOf(d.SetNX(ctx, c.to, "v", time.Second)))
				}
			})
		}
		all.Wait()
		slices.Sort(flights)
		check.EqualSlices(t, "flights", flights, tt.want)
	})
}
