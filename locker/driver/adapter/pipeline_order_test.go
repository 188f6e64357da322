//nolint:forbidigo // fake time
package adapter_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// Commands travel in the order in which they came, but urgent ones before others. A flight over a
// reserved connection has urgent ones alone.
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

// numbers returns those from first to before last.
func numbers(first, last int) string {
	var s []string
	for i := range last - first {
		s = append(s, fmt.Sprint(first+i))
	}
	return strings.Join(s, " ")
}

// Beside connections that are all silent, a call is under way two milliseconds after it came at the
// latest, as long as there are connections, and no more than 32 share one.
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

// A call that waits beside silent flights is not forgotten, where nobody comes after it.
func TestLastCallBesideSilentFlights(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		const silence = 2 * time.Second
		s := fakeServer{reply: func(_ context.Context, words []string) {
			if words[0] == "quick" {
				time.Sleep(400 * time.Microsecond)
			} else {
				time.Sleep(silence)
			}
		}}
		d, p := over(adapter.Client{Connections: 100, Send: s.send})
		defer p.Close()
		var wg sync.WaitGroup
		send := func(word string, n int) {
			for range n {
				wg.Go(func() { check.OK(t, call(t.Context(), t, d, word)) })
				synctest.Wait()
			}
		}
		send("quick", 4)
		send("silent", 1) // waits, so that slow flights are looked for after a millisecond
		time.Sleep(400 * time.Microsecond)
		send("silent", 3)
		time.Sleep(200 * time.Microsecond)
		came := time.Now()
		check.OK(t, call(t.Context(), t, d, "last"))
		check.Within(t, "the last call", time.Since(came), silence, silence+2*time.Millisecond)
		wg.Wait()
	})
}

// Up to eight callers have four flights at once. More have two, which are fuller.
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
		check.Advance(5 * roundTrip) // what began as the first of many came is over
		mu.Lock()
		most = flying
		mu.Unlock()
		wg.Wait()
		check.AtMost(t, "flights at once", most, tt.want)
	})
}

// Keys of one slot share a pipeline; the slots are those of CLUSTER KEYSLOT.
func TestSlotPipelines(t *testing.T) {
	t.Parallel()
	pipelines := adapter.NewSlotPipelines(adapter.Client{Send: new(fakeServer).send})
	defer pipelines.Close()
	for key, slot := range map[string]int{
		"": 0, "foo": 12182, "{foo}:fence": 12182, "x{foo}y{z}": 12182, "123456789": 12739, "{}foo": 9500,
	} {
		check.Equal(t, fmt.Sprintf("%q has the pipeline of slot %d", key, slot), pipelines.To(key) == pipelines[slot/256], true)
	}
}
