package death_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// campaign is a Candidate: args are the provider, the strategy, the address, the name and the TTL.
// It says "waiting" when it waits for another, subscribed, and "leads", with the term and the time
// in ns, when it leads. It executes each line of in:
//
//	state   say "state", the term that it leads, or 0, and the time in ns
//	stop    step down: say "stops" and the time in ns, and then "stopped" and the result of Run
//	start   campaign again
func campaign(args []string, in io.Reader, out io.Writer) error {
	ttl, err := time.ParseDuration(args[4])
	if err != nil {
		return err
	}
	bare, err := open(args[0], args[1], drivertest.Target{Kind: drivertest.Single, Addrs: []string{args[2]}})
	if err != nil {
		return err
	}
	candidate, err := leader.New(locker.Must(holdfast.Wrap(bare, holdfast.Config{})), leader.Config{
		Name: args[3], TTL: ttl,
		Lead: func(ctx context.Context, term int64) error {
			fmt.Fprintln(out, "leads", term, time.Now().UnixNano())
			<-ctx.Done()
			return ctx.Err()
		},
	})
	if err != nil {
		return err
	}
	start := func() (stop func() error) {
		var waits atomic.Bool
		ctx, cancel := context.WithCancel(locktrace.With(context.Background(), &locktrace.Trace{
			Waiting: func(_ context.Context, i locktrace.WaitingInfo) {
				if i.Subscribed && !waits.Swap(true) {
					fmt.Fprintln(out, "waiting")
				}
			},
		}))
		ended := make(chan error, 1)
		go func() { ended <- candidate.Run(ctx) }()
		return func() error {
			fmt.Fprintln(out, "stops", time.Now().UnixNano())
			cancel()
			return <-ended
		}
	}
	stop := start()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch lines.Text() {
		case "state":
			term, leads := candidate.Term()
			if candidate.IsLeader() && !leads {
				return fmt.Errorf("IsLeader and Term disagree")
			}
			fmt.Fprintln(out, "state", term, time.Now().UnixNano())
		case "stop":
			fmt.Fprintln(out, "stopped", stop())
		case "start":
			stop = start()
		}
	}
	return nil
}

// candidate is a Candidate in a process of its own.
type candidate struct{ *holder }

func startCandidate(t testing.TB, provider, strategy, addr, name string, ttl time.Duration) candidate {
	t.Helper()
	return candidate{spawn(t, "candidate", provider, strategy, addr, name, ttl.String())}
}

// says waits for a line of the child beginning with word, and returns the numbers behind it.
func (c candidate) says(word string) (first, second int64) {
	c.t.Helper()
	for {
		line := c.hear()
		if rest, ok := strings.CutPrefix(line, word); ok {
			_, _ = fmt.Sscan(rest, &first, &second)
			return first, second
		}
	}
}

func (c candidate) tells(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.t.Fatal(err)
	}
}
