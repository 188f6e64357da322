//nolint:forbidigo // fake time
package adapter_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
	"github.com/holdfast-go/holdfast/locker/internal/gather"
)

// Commands travel in order of arrival, but urgent ones before others. A flight over a reserved
// connection has urgent ones alone.
func TestOrder(t *testing.T) {
	t.Parallel()
	type test struct {
		single      bool
		connections int
		words       string // of the calls, in order; urgent ones begin with u
		want        string // the flights; each ends when the ones before it have
	}
	check.EachInFakeTime(t, map[string]test{
		"as they came":             {false, 2, "0 1 2 3", "[0] [1 2 3]"},
		"an urgent one":            {false, 2, "0 1 2 u1", "[0] [u1] [1 2]"},
		"urgent ones first":        {false, 2, "0 u0 1 2 u1 u2", "[0] [u0] [u1 u2] [1 2]"},
		"urgent ones first, alone": {true, 2, "0 u0 1 2 u1 u2", "[0] [u0] [u1] [u2] [1] [2]"},
		"urgent ones at first":     {false, 2, "u0 u1 u2 1", "[u0] [u1] [u2] [1]"},
		"together, over a connection that is not reserved": {false, 16, "0 1 2 3 4 5 u1 6 u2", "[0] [1] [2] [3] [u1 u2 4 5 6]"},
		"one by one":                     {true, 4, "0 1 2 3 4", "[0] [1] [2] [3] [4]"},
		"one by one, over two reserved":  {true, 16, "u0 u1 u2 u3", "[u0] [u1] [u2] [u3]"},
		"up to 32 together":              {false, 2, numbers(0, 70), "[0] [" + numbers(1, 33) + "] [" + numbers(33, 65) + "] [" + numbers(65, 70) + "]"},
		"up to 32 together, urgent ones": {false, 2, "0 u0 " + numbers(1, 33) + " u1", "[0] [u0] [u1] [" + numbers(1, 33) + "]"},
	}, func(t *testing.T, tt test) {
		s := fakeServer{reply: func(context.Context, []string) { time.Sleep(900 * time.Microsecond) }}
		var urgent sync.Map
		d, p := over(adapter.Client{
			Connections: tt.connections, Single: tt.single, Send: func(ctx context.Context, commands []*adapter.Command) {
				urgent.Store(commands[0].Words[1], driver.Urgent(ctx))
				s.send(ctx, commands)
			},
		})
		defer p.Close()
		var wg sync.WaitGroup
		for word := range strings.FieldsSeq(tt.words) {
			isUrgent := strings.HasPrefix(word, "u")
			wg.Go(func() { check.OK(t, call(until(t, time.Minute, isUrgent), t, d, word)) })
			check.Advance(time.Microsecond)
		}
		wg.Wait()
		var got []string
		for _, f := range s.sent() {
			got = append(got, fmt.Sprint(f))
			isUrgent, _ := urgent.Load(f[0])
			check.Equal(t, "the context of the flight is urgent", isUrgent, any(strings.HasPrefix(f[0], "u")))
		}
		check.Equal(t, "flights", strings.Join(got, " "), tt.want)
	})
}

// numbers returns the numbers from first to before last.
func numbers(first, last int) string {
	var s []string
	for i := range last - first {
		s = append(s, fmt.Sprint(first+i))
	}
	return strings.Join(s, " ")
}

// Beside connections that are all silent, a call is under way within two milliseconds, while there
// are connections; at most 32 calls share one.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	type test struct {
		every time.Duration // between two calls
		calls int
		most  time.Duration
	}
	check.EachInFakeTime(t, map[string]test{
		"a few":       {10 * time.Millisecond, 20, 0},
		"each 100 us": {100 * time.Microsecond, 400, 2 * time.Millisecond},
		"a burst":     {0, 320, 5 * time.Millisecond}, // two full flights each millisecond
	}, func(t *testing.T, tt test) {
		const silence = 2 * time.Second
		s := fakeServer{reply: func(context.Context, []string) { time.Sleep(silence) }}
		d, p := over(adapter.Client{Connections: 128, Send: s.send})
		defer p.Close()
		var wg sync.WaitGroup
		for i := range tt.calls {
			wg.Go(func() {
				came := time.Now()
				check.OK(t, call(t.Context(), t, d, fmt.Sprint(i)))
				check.Within(t, "the wait for a flight", time.Since(came)-silence, 0, tt.most)
			})
			time.Sleep(tt.every)
		}
		wg.Wait()
		for _, f := range s.sent() {
			check.AtMost(t, "commands of a flight", len(f), 32)
		}
	})
}

// Up to eight callers have four flights at once. More callers have two, and fuller ones.
func TestFlightsAtOnce(t *testing.T) {
	t.Parallel()
	type test struct {
		callers, want int
	}
	check.EachInFakeTime(t, map[string]test{
		"one": {1, 1}, "four": {4, 4}, "eight": {8, 4}, "many": {100, 2},
	}, func(t *testing.T, tt test) {
		flying, most := 0, 0
		var mu sync.Mutex
		add := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			flying += n
			most = max(most, flying)
		}
		s := fakeServer{reply: func(context.Context, []string) {
			add(1)
			time.Sleep(roundTrip)
			add(-1)
		}}
		d, p := over(adapter.Client{Connections: 100, Send: s.send})
		defer p.Close()
		var wg sync.WaitGroup
		for i := range tt.callers {
			wg.Go(func() {
				for j := range 40 {
					time.Sleep(time.Duration(i) * time.Microsecond) // not all at the same moment
					check.OK(t, call(t.Context(), t, d, fmt.Sprint(i, ".", j)))
				}
			})
		}
		check.Advance(5 * roundTrip) // the flights begun at the first arrivals have ended
		mu.Lock()
		most = flying
		mu.Unlock()
		wg.Wait()
		check.AtMost(t, "flights at once", most, tt.want)
	})
}

// pipelines chooses a pipeline by a key.
type pipelines map[string]*adapter.Pipeline

func (p pipelines) To(key string) *adapter.Pipeline { return p[key] }

func (p pipelines) Close() {
	for _, one := range p {
		one.Close()
	}
}

// gatheredCall is one call of a group.
type gatheredCall struct {
	after    time.Duration // until it sends, or ends without sending
	to       string        // the server; "": it sends nothing
	patience time.Duration // until its ctx ends; 0: an hour
	again    bool          // it sends a second command
}

// Commands of calls made together wait until each call has sent one or has ended, for a millisecond
// at most. Those to one server take one flight.
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
		g := gather.NewGroup(len(tt.calls))
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
