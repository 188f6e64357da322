//nolint:forbidigo // fake time
package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// aboard is a server with one flight at a time. It answers the occupying commands after a second.
// Commands that came by then travel together: they begin at 3 s, and are answered at 5 s.
func aboard() *fakeServer {
	pause := func(length time.Duration) func(context.Context, []string) {
		return func(_ context.Context, words []string) {
			if words[0] != "first" && words[0] != "urgent" {
				time.Sleep(length)
			}
		}
	}
	s := &fakeServer{hold: pause(2 * time.Second)}
	s.reply = func(ctx context.Context, words []string) {
		pause(1*time.Second)(ctx, words)
		time.Sleep(time.Second)
	}
	return s
}

// occupy fills both connections of a client, so others wait. wait waits for the answers.
func occupy(t *testing.T, d *adapter.Driver) (wait func()) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() { check.OK(t, call(until(t, time.Minute, false), t, d, "first")) })
	synctest.Wait() // an urgent call would get the other connection first
	wg.Go(func() { check.OK(t, call(until(t, time.Minute, true), t, d, "urgent")) })
	synctest.Wait()
	return wg.Wait
}

// A caller leaves when the parent of its bounded context ends, and soon after its deadline.
func TestLeavingWithTheParent(t *testing.T) {
	t.Parallel()
	type test struct {
		cancelled, parent, own time.Duration // when the parent is cancelled, and the two deadlines
		at                     time.Duration
		want                   error
	}
	const s, late = time.Second, time.Minute
	check.EachInFakeTime(t, map[string]test{
		"cancelled":             {cancelled: 2 * s, parent: 2 * late, own: late, at: 2 * s, want: context.Canceled},
		"the parent's deadline": {cancelled: late, parent: 2 * s, own: late, at: 2 * s, want: context.DeadlineExceeded},
		"its own deadline":      {cancelled: late, parent: 2 * late, own: 2 * s, at: 2*s + grain, want: context.DeadlineExceeded},
		"its own, which is near": {
			cancelled: late, parent: 2 * late, own: s / 2, at: s / 2, want: context.DeadlineExceeded,
		},
	}, func(t *testing.T, tt test) {
		d, p := over(adapter.Client{Connections: 2, Send: func(ctx context.Context, commands []*adapter.Command) {
			commands[0].Begin()
			<-ctx.Done()
			commands[0].Answer(nil, ctx.Err())
		}})
		defer p.Close()
		start := time.Now()
		parent, cancel := context.WithTimeout(t.Context(), tt.parent)
		defer cancel()
		time.AfterFunc(tt.cancelled, cancel)
		ctx := bounded.New(parent, tt.own)
		defer ctx.Stop()
		_, err := d.Do(ctx, "PING")
		check.Is(t, err, tt.want)
		check.IsNot(t, err, driver.ErrNotSent)
		check.Took(t, "the call", start, tt.at)
	})
}

// A caller that leaves gets an error by the progress of its command: not sent, and then it never
// is, or the answer later. Commands of the same flight get theirs.
func TestLeaving(t *testing.T) {
	t.Parallel()
	script := driver.NewScript("return 1")
	type operation struct {
		call   func(ctx context.Context, d *adapter.Driver) error
		answer any
		late   string // of the late answer
	}
	operations := map[string]operation{
		"SETNX": {func(ctx context.Context, d *adapter.Driver) error {
			return check.ErrOf(d.SetNX(ctx, "k", "v", 7*time.Millisecond))
		}, "OK", "true <nil>"},
		"SETNX, refused": {func(ctx context.Context, d *adapter.Driver) error {
			return check.ErrOf(d.SetNX(ctx, "k", "v", 7*time.Millisecond))
		}, nil, "false <nil>"},
		"EVAL": {func(ctx context.Context, d *adapter.Driver) error {
			return check.ErrOf(d.Eval(ctx, script, []string{"k"}, []string{"7"}))
		}, int64(8), "8 <nil>"},
	}
	type stage struct {
		leaves                 time.Duration
		boarded, begun, isLate bool
	}
	stages := map[string]stage{
		"while it waits":        {leaves: 500 * time.Millisecond},
		"before it is written":  {leaves: 2 * time.Second, boarded: true},
		"before it is answered": {leaves: 4 * time.Second, boarded: true, begun: true, isLate: true},
	}
	type test struct {
		operation
		stage
		end func(t *testing.T, after time.Duration) context.Context
		why error // the end of that context
	}
	atDeadline := func(t *testing.T, after time.Duration) context.Context { return until(t, after, false) }
	cancelled := func(_ *testing.T, after time.Duration) context.Context {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(after, cancel)
		return ctx
	}
	unaware := func(_ *testing.T, after time.Duration) context.Context { return dated{time.Now().Add(after)} } // it has no error
	tests := map[string]test{}
	for o, op := range operations {
		for s, st := range stages {
			tests[o+" "+s+", at its deadline"] = test{op, st, atDeadline, context.DeadlineExceeded}
			if st.boarded { // unboarded callers leave within a second: so near a deadline is awaited itself
				tests[o+" "+s+", at a deadline alone"] = test{op, st, unaware, context.DeadlineExceeded}
			}
			tests[o+" "+s+", cancelled"] = test{op, st, cancelled, context.Canceled}
		}
	}
	check.EachInFakeTime(t, tests, func(t *testing.T, tt test) {
		s := aboard()
		s.answer = func(c *adapter.Command) any {
			if c.Words[0] == "ECHO" {
				return c.Words[1]
			}
			return tt.answer
		}
		var left []context.Context
		var flight context.Context
		d, p := over(adapter.Client{Connections: 2, Send: func(ctx context.Context, commands []*adapter.Command) {
			if len(commands) > 1 {
				flight = ctx //nolint:fatcontext // the ctx of Send
			}
			s.send(ctx, commands)
		}, Left: func(ctx context.Context) { left = append(left, ctx) }})
		defer p.Close()
		began := time.Now()
		defer occupy(t, d)()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { check.OK(t, call(t.Context(), t, d, "before")) })
		synctest.Wait()
		ctx := tt.end(t, tt.leaves)
		time.AfterFunc(0, func() { wg.Go(func() { check.OK(t, call(t.Context(), t, d, "behind")) }) })
		err := tt.call(ctx, d)
		check.Within(t, "the call", time.Since(began), tt.leaves, tt.leaves+grain)
		check.Is(t, err, tt.why)
		check.Equal(t, "not sent", errors.Is(err, driver.ErrNotSent), !tt.begun)
		pending, isLate := errors.AsType[*driver.PendingError](err)
		check.Equal(t, "an answer is pending", isLate, tt.isLate)
		if isLate {
			late := make(chan string, 1)
			pending.OnAnswer(func(v any, err error) {
				if r, ok := v.(driver.Reply); ok {
					v, _ = r.Int(0)
				}
				late <- fmt.Sprint(v, " ", err)
			})
			check.Equal(t, "the late answer", <-late, tt.late)
			check.Took(t, "the late answer", began, 5*time.Second)
		}
		wg.Wait()
		check.Took(t, "those that travel with it", began, 5*time.Second)
		check.Equal(t, "it boarded", slices.ContainsFunc(s.sent(), func(f []string) bool { return slices.Contains(f, "7") }), tt.boarded)
		check.Equal(t, "times that it was written", s.began["7"], map[bool]int{true: 1}[tt.begun])
		if tt.boarded {
			check.EqualSlices(t, "flights of which Left was told", left, []context.Context{flight})
		} else {
			check.Equal(t, "times that Left was told", len(left), 0)
		}
	})
}

// The context of a flight ends a second after the latest deadline aboard; a command without one
// counts as one with a minute. The context has the values of the first command.
func TestDeadlineOfAFlight(t *testing.T) {
	t.Parallel()
	type key struct{}
	const s, none = time.Second, 0
	type test struct {
		deadlines []time.Duration
		want      time.Duration
	}
	check.EachInFakeTime(t, map[string]test{
		"one":            {[]time.Duration{9 * s}, 10 * s},
		"the first":      {[]time.Duration{9 * s, 7 * s, 8 * s}, 10 * s},
		"the last":       {[]time.Duration{7 * s, 8 * s, 90 * s}, 91 * s},
		"none":           {[]time.Duration{7 * s, none, 8 * s}, 62 * s},
		"one after none": {[]time.Duration{none, 70 * s}, 71 * s},
	}, func(t *testing.T, tt test) {
		began := time.Now()
		server := aboard()
		stage := server.hold
		server.hold = func(ctx context.Context, words []string) {
			if len(words) == len(tt.deadlines) && words[0] == "0" {
				deadline, _ := ctx.Deadline()
				check.Equal(t, "the deadline", deadline.Sub(began), tt.want)
				check.Equal(t, "the caller whose values it has", ctx.Value(key{}), any(0))
			}
			stage(ctx, words)
		}
		d, p := over(adapter.Client{Connections: 2, Send: server.send})
		defer p.Close()
		wait := occupy(t, d)
		var wg sync.WaitGroup
		for i, in := range tt.deadlines {
			ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, i))
			defer cancel()
			if in != none {
				ctx, cancel = context.WithDeadline(ctx, began.Add(in))
				defer cancel()
			}
			wg.Go(func() { check.OK(t, call(ctx, t, d, fmt.Sprint(i))) })
			synctest.Wait()
		}
		wait()
		wg.Wait()
		check.Equal(t, "flights", len(server.sent()), 3)
	})
}

// After all callers have left, the context of a flight ends early: at once if nothing was sent or
// the pipeline is closed, otherwise a second later.
func TestFlightThatAllHaveLeft(t *testing.T) {
	t.Parallel()
	const s, never = time.Second, time.Hour
	type test struct {
		begun  string        // the commands that begin
		closed time.Duration // time of the pipeline's Close
		want   time.Duration // end of the context; a leaves at 3 s, b at 5 s
	}
	check.EachInFakeTime(t, map[string]test{
		"nothing was sent":               {"", never, 5 * s},
		"all was sent":                   {"ab", never, 6 * s},
		"the first was sent":             {"a", never, 6 * s},
		"the last was sent":              {"b", never, 6 * s},
		"closed before anybody left":     {"ab", 2 * s, 5 * s},
		"closed while somebody waits":    {"ab", 4 * s, 5 * s},
		"closed after all have left":     {"ab", 5500 * time.Millisecond, 5500 * time.Millisecond},
		"nothing was sent, and closed":   {"", 4 * s, 5 * s},
		"closed after the context ended": {"ab", 7 * s, 6 * s},
	}, func(t *testing.T, tt test) {
		began := time.Now()
		ended := make(chan time.Duration, 1)
		d, p := over(adapter.Client{Connections: 2, Send: func(ctx context.Context, commands []*adapter.Command) {
			switch word := commands[0].Words[1]; word {
			case "first", "urgent":
				commands[0].Begin()
				time.Sleep(time.Second)
				commands[0].Answer(word, nil)
			default:
				for _, c := range commands {
					if word := c.Words[1]; slices.Contains([]byte(tt.begun), word[0]) {
						c.Begin()
					}
				}
				<-ctx.Done()
				ended <- time.Since(began)
			}
		}})
		time.AfterFunc(tt.closed, p.Close)
		defer p.Close()
		defer occupy(t, d)()
		var wg sync.WaitGroup
		defer wg.Wait()
		for word, leaves := range map[string]time.Duration{"a": 3 * s, "b": 5 * s} {
			ctx, cancel := context.WithDeadline(context.Background(), began.Add(time.Hour))
			time.AfterFunc(leaves, cancel)
			wg.Go(func() { check.Is(t, call(ctx, t, d, word), context.Canceled) })
		}
		check.Equal(t, "the context's end", <-ended, tt.want)
	})
}

// A client that panics in its caller's goroutine leaves no flight and no place behind.
func TestPanicInline(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]bool{"bounded": true, "endless": false}, func(t *testing.T, bounded bool) {
		var s fakeServer
		broken := true
		d, p := over(adapter.Client{
			Connections: 2, Inline: func(context.Context) bool { return true },
			Send: func(ctx context.Context, commands []*adapter.Command) {
				if broken {
					panic("a hook")
				}
				s.send(ctx, commands)
			},
		})
		defer p.Close()
		ctx := context.Background()
		if bounded {
			ctx = until(t, time.Minute, false)
		}
		for range 20 {
			func() {
				defer func() { check.Equal(t, "panic", recover(), any("a hook")) }()
				_ = call(ctx, t, d, "a")
			}()
		}
		broken = false
		began := time.Now()
		check.OK(t, call(ctx, t, d, "a"))
		check.Took(t, "a call afterwards", began, roundTrip)
	})
}

// dated is a context that ends at its deadline alone.
type dated struct{ deadline time.Time }

func (d dated) Deadline() (time.Time, bool) { return d.deadline, true }
func (dated) Done() <-chan struct{}         { return nil }
func (dated) Err() error                    { return nil }
func (dated) Value(any) any                 { return nil }
