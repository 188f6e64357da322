package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func newWatch(o *options) *cobra.Command {
	var w watcher
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "watch NAME",
		Short: "Show who holds a lock, now and after each change",
		Long: `Show who holds a lock, now and after each change, until it is interrupted. At a terminal the
last line shows the time that is left, the number of waiting processes, and how often another hold
followed.

An outage is reported on standard error, and waited out.`,
		Args: takes(1, 1, "one NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval <= 0 {
				return fmt.Errorf("--interval %s: want more than 0", interval)
			}
			l, c, err := o.openInspector()
			if err != nil {
				return err
			}
			defer c.close()
			ctx, cancel := untilSignal(cmd.Context())
			defer cancel(nil)
			w.name, w.polls, w.withStrategy = args[0], polls{Locker: l}, l.withStrategy
			return w.watch(ctx, interval)
		},
		ValidArgsFunction: o.completeName,
	}
	jsonFlag(cmd, &w.asJSON)
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "how often to ask the server")
	return cmd
}

// watcher shows the states of a lock.
type watcher struct {
	name         string
	asJSON       bool
	polls        polls
	withStrategy func(locker.State) lockState

	line       *statusLine
	succession succession
	printed    *locker.State // nil: none
}

func (w *watcher) watch(ctx context.Context, interval time.Duration) error {
	text := func() string { return w.polls.text(time.Now()) }
	if w.asJSON {
		text = func() string { return "" }
	}
	w.line = startStatusLine(os.Stdout, text)
	defer w.line.stop()
	last := error(nil)
	for state, err := range locker.Watch(ctx, &w.polls, w.name, interval) {
		if last = err; err != nil {
			if !driver.Transient(err) { // it ends the watch
				continue
			}
			_ = w.line.above(func() error { warnf("%s", explain("watch", err)); return nil })
			continue
		}
		if err := w.show(state); err != nil {
			return withStatus(err)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return withStatus(last) // another attempt would only repeat it
}

// show prints a state. At a terminal the last line shows the number of waiters.
func (w *watcher) show(s locker.State) error {
	count := w.succession.update(s)
	w.polls.setHandOvers(count)
	if !w.asJSON && w.line.atTerminal() && w.printed != nil {
		before := *w.printed
		before.Left, before.Waiters = s.Left, s.Waiters
		if before == s {
			return nil
		}
	}
	w.printed = &s
	return w.line.above(func() error {
		if w.asJSON {
			return printJSON(stdout, watchJSON{time.Now().Format(time.RFC3339Nano), newLockJSON(w.name, w.withStrategy(s)), count})
		}
		_, err := fmt.Fprintf(stdout, "%s  %s  %s%s\n", time.Now().Format(time.TimeOnly), printable(w.name), describe(w.withStrategy(s)), handOvers(count))
		return printed(err)
	})
}

// watchJSON is a state in JSON, and when it was seen.
type watchJSON struct {
	Time string `json:"time"`
	lockJSON
	HandOvers int `json:"handOvers"`
}

func handOvers(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 hand-over"
	default:
		return fmt.Sprintf(", %d hand-overs", n)
	}
}

// succession counts the holds after the first one seen.
type succession struct {
	n    int
	seen bool         // a hold was seen
	free bool         // and then the lock was free
	last locker.State // of the last hold
}

// update records a state, and returns how many holds have followed. While there are several holds,
// none of them follows another.
func (c *succession) update(s locker.State) int {
	if !s.Held || s.Holds == 0 {
		c.free = true
		return c.n
	}
	alone := s.Holds == 1 && c.last.Holds == 1
	if c.seen && (c.free || alone && otherHold(s, c.last)) {
		c.n++
	}
	c.seen, c.free, c.last = true, false, s
	return c.n
}

// otherHold reports whether two states show different holds. Holds without an owner, run's default,
// differ by their notes and fencing tokens.
func otherHold(a, b locker.State) bool {
	return a.Owner != b.Owner || a.Owner == "" && (a.Note != b.Note || a.Fence != b.Fence)
}

// polls is the Locker of locker.Watch, and remembers the last answer of Inspect.
type polls struct {
	locker.Locker

	mu        sync.Mutex
	state     locker.State
	at        time.Time // of the last answer; zero: there is none
	failing   bool      // the last poll got no answer
	handOvers int
}

// Inspect implements locker.Inspector.
func (p *polls) Inspect(ctx context.Context, name string) (locker.State, error) {
	inspector, _ := lease.Find[locker.Inspector](p.Locker)
	state, err := inspector.Inspect(ctx, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failing = err != nil; !p.failing {
		p.state, p.at = state, time.Now()
	}
	return state, err
}

func (p *polls) setHandOvers(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handOvers = n
}

// text returns the status line.
func (p *polls) text(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return statusText(p.state, now.Sub(p.at), p.at.IsZero(), p.failing, p.handOvers)
}

// statusText returns the status line for a state of some time ago.
func statusText(s locker.State, ago time.Duration, unknown, failing bool, followers int) string {
	if unknown {
		return ""
	}
	var parts []string
	switch {
	case failing:
		parts = append(parts, "no answer for "+ago.Round(time.Second).String())
	case s.Held && s.Left > 0:
		parts = append(parts, countdown(s.Left-ago))
	}
	if s.Waiters >= 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", s.Waiters))
	}
	return "          " + strings.Join(parts, ", ") + handOvers(followers)
}

// countdown returns a text of about the same length for each tenth of a second.
func countdown(left time.Duration) string {
	left = max(left, 0)
	if left >= time.Minute {
		return left.Truncate(time.Second).String() + " left"
	}
	return fmt.Sprintf("%.1fs left", left.Truncate(100*time.Millisecond).Seconds())
}
