//nolint:forbidigo // fake time
package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// roundTrip is the duration of a fakeServer's flight, less than the millisecond that one counts.
const roundTrip = 500 * time.Microsecond

// fakeServer is a client of a server that answers each command with its last word.
type fakeServer struct {
	// hold, if set, is called for each flight before anything is written.
	hold func(ctx context.Context, words []string)
	// reply, if set, is called for each flight once all is written.
	reply func(ctx context.Context, words []string)
	// answer, if set, returns the answer to a command.
	answer func(c *adapter.Command) any

	mu      sync.Mutex
	flights [][]string     // the last word of each command
	began   map[string]int // number of writes, by word
}

func (s *fakeServer) send(ctx context.Context, commands []*adapter.Command) {
	var words []string
	for _, c := range commands {
		words = append(words, c.Words[len(c.Words)-1])
	}
	s.mu.Lock()
	s.flights = append(s.flights, words)
	s.mu.Unlock()
	if s.hold != nil {
		s.hold(ctx, words)
	}
	var written []*adapter.Command
	for _, c := range commands {
		if !c.Begin() {
			continue
		}
		written = append(written, c)
		s.mu.Lock()
		if s.began == nil {
			s.began = map[string]int{}
		}
		s.began[c.Words[len(c.Words)-1]]++
		s.mu.Unlock()
	}
	switch {
	case len(written) == 0:
		return
	case s.reply != nil:
		s.reply(ctx, words)
	default:
		time.Sleep(roundTrip)
	}
	for _, c := range written {
		if s.answer != nil {
			c.Answer(s.answer(c), nil)
		} else {
			c.Answer(c.Words[len(c.Words)-1], nil)
		}
	}
}

func (s *fakeServer) sent() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.flights)
}

// over returns a driver over one pipeline of c.
func over(c adapter.Client) (*adapter.Driver, *adapter.Pipeline) {
	d, p := new(adapter.Driver), adapter.NewPipeline(c)
	d.Pipelines = p
	return d, p
}

// call sends word, and demands it as the answer unless there is an error.
func call(ctx context.Context, t *testing.T, d *adapter.Driver, word string) error {
	v, err := d.Do(ctx, "ECHO", word)
	if err == nil && v != word {
		t.Errorf("%s was answered %v", word, v)
	}
	return err
}

// calls makes n calls in goroutines, one after another. wait returns their errors.
func calls(ctx context.Context, t *testing.T, d *adapter.Driver, n int) (wait func() []error) {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = call(ctx, t, d, fmt.Sprint(i)) })
		synctest.Wait()
	}
	return func() []error { wg.Wait(); return errs }
}

// until is a context that ends at a deadline alone.
func until(t *testing.T, d time.Duration, urgent bool) context.Context {
	t.Helper()
	b := &bounded.Context{IsUrgent: urgent}
	b.Start(context.Background(), time.Now().Add(d))
	t.Cleanup(b.Stop)
	return b
}

// If nothing is under way, a caller sends at once, in its own goroutine if the client allows it.
func TestLoneCall(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]bool{"inline": true, "not inline": false}, func(t *testing.T, inline bool) {
		var s fakeServer
		var inlined atomic.Int32
		d, p := over(adapter.Client{
			Connections: 10, Send: s.send, Inline: func(context.Context) bool { return inline },
			SendInline: func(ctx context.Context, c *adapter.Command) {
				inlined.Add(1)
				s.send(ctx, []*adapter.Command{c})
			},
		})
		defer p.Close()
		for range 3 {
			began := time.Now()
			check.OK(t, call(until(t, time.Minute, false), t, d, "a"))
			check.Took(t, "a lone call", began, roundTrip)
		}
		check.Equal(t, "calls in their callers' goroutines", inlined.Load() == 3, inline)
		check.Equal(t, "flights", len(s.sent()), 3)
	})
}

// A flight counts for a millisecond: nobody waits longer for a flight to a distant server.
// Afterwards earlier counts are forgotten.
func TestDistantServer(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		const distance = 30 * time.Millisecond
		var held chan struct{}
		s := fakeServer{reply: func(context.Context, []string) {
			if held != nil {
				<-held
				return
			}
			time.Sleep(distance)
		}}
		var inlined atomic.Int32
		d, p := over(adapter.Client{
			Connections: 100, Send: s.send, Inline: func(context.Context) bool { return true },
			SendInline: func(ctx context.Context, c *adapter.Command) {
				inlined.Add(1)
				s.send(ctx, []*adapter.Command{c})
			},
		})
		defer p.Close()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				for j := range 20 {
					ctx := until(t, time.Hour, false)
					if j%10 == 9 {
						ctx = until(t, distance/2, false) // leaves
					}
					began := time.Now()
					if err := call(ctx, t, d, fmt.Sprint(i, ".", j)); err == nil {
						check.Within(t, "a call", time.Since(began), distance, distance+5*time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
		check.Advance(time.Minute)
		inlined.Store(0)
		check.OK(t, call(until(t, time.Minute, false), t, d, "a"))
		check.Equal(t, "lone calls in their callers' goroutines", inlined.Load(), 1)
		held = make(chan struct{})
		before := len(s.sent())
		for i := range 100 {
			wg.Go(func() { check.OK(t, call(t.Context(), t, d, fmt.Sprint("crowd ", i))) })
		}
		synctest.Wait()
		check.AtMost(t, "flights that begin at once", len(s.sent())-before, 4)
		close(held)
		wg.Wait()
	})
}

// One connection in eight is for urgent calls, at least one.
func TestReservedConnections(t *testing.T) {
	t.Parallel()
	type test struct{ connections, acquires, all int }
	check.EachInFakeTime(t, map[string]test{
		"none": {0, 1, 2}, "1": {1, 1, 2}, "2": {2, 1, 2}, "8": {8, 7, 8}, "16": {16, 14, 16}, "128": {128, 112, 128},
	}, func(t *testing.T, tt test) {
		release := make(chan struct{})
		s := fakeServer{reply: func(context.Context, []string) { <-release }}
		d, p := over(adapter.Client{Connections: tt.connections, Single: true, Send: s.send})
		defer p.Close()
		acquires := calls(t.Context(), t, d, 200)
		check.Equal(t, "acquires under way", len(s.sent()), tt.acquires)
		urgent := calls(until(t, time.Minute, true), t, d, 200)
		check.Equal(t, "calls under way", len(s.sent()), tt.all)
		close(release)
		check.EqualSlices(t, "errors", append(acquires(), urgent()...), make([]error, 400))
	})
}

// A caller whose command was not sent in time gets the client's knowledge of it.
func TestUnsent(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		began := time.Now()
		refused := errors.New("refused")
		s := fakeServer{hold: func(ctx context.Context, _ []string) { <-ctx.Done() }}
		d, p := over(adapter.Client{
			Connections: 2, Send: s.send, Unsent: func(err error, since time.Time) error {
				check.Took(t, "the call", since, time.Second)
				return errors.Join(err, refused)
			},
		})
		defer p.Close()
		err := call(until(t, time.Second, false), t, d, "a")
		check.Error(t, "the call", err, driver.ErrNotSent, context.DeadlineExceeded, refused)
		check.Took(t, "the call", began, time.Second)
	})
}

// A client's return without an answer is not a nil reply, and the end of another context, such as
// the client's own, is not the caller's: a begun command may have been executed, and any other was
// not sent.
func TestClientWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	type test struct {
		answer  error // nil: none
		begins  bool
		endless bool
		inline  bool
	}
	check.EachInFakeTime(t, map[string]test{
		"begun":              {begins: true},
		"begun, inline":      {begins: true, inline: true},
		"begun, endless":     {begins: true, endless: true},
		"not begun":          {},
		"not begun, inline":  {inline: true},
		"not begun, endless": {endless: true},
		"deadline":           {answer: context.DeadlineExceeded, begins: true},
		"cancelled":          {answer: context.Canceled, begins: true},
		"deadline, endless":  {answer: context.DeadlineExceeded, begins: true, endless: true},
		"deadline, not sent": {answer: context.DeadlineExceeded},
	}, func(t *testing.T, tt test) {
		d, p := over(adapter.Client{
			Connections: 2, Inline: func(context.Context) bool { return tt.inline },
			Send: func(_ context.Context, commands []*adapter.Command) {
				if tt.begins {
					commands[0].Begin()
				}
				if tt.answer != nil {
					commands[0].Answer(nil, tt.answer)
				}
			},
		})
		defer p.Close()
		ctx := context.Background()
		if !tt.endless {
			ctx = until(t, time.Minute, false)
		}
		_, err := d.SetNX(ctx, "k", "v", time.Minute)
		if err == nil {
			t.Fatal("SET NX without an answer has an outcome")
		}
		check.IsNot(t, err, context.Canceled, context.DeadlineExceeded)
		check.Equal(t, "not sent", errors.Is(err, driver.ErrNotSent), !tt.begins)
	})
}
