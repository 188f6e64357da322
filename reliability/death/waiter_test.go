package death_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// turnLimit is how long after a release the next waiter may take to get the lock if the one that
// was woken does not try.
const turnLimit = 3 * time.Second

// strictLimit is turnLimit of a semaphore, whose waiters have a strict order: a first waiter that
// is frozen keeps the others out for two polls.
const strictLimit = 5 * time.Second

// wait is the waiter: args are the provider, the strategy, the kind of servers, their addresses
// with commas between them, the name, and whether it stops for good when a release wakes it. It
// says "waiting" when it is subscribed and was refused, and "woken" when a release wakes it. When
// it has the lock it says "held", with the fencing token, and obeys.
func wait(args []string, in io.Reader, out io.Writer) error {
	provider, strategy, name, stops := args[0], args[1], args[4], args[5] == "true"
	bare, err := open(provider, strategy, drivertest.Target{Kind: drivertest.Kind(args[2]), Addrs: strings.Split(args[3], ",")})
	if err != nil {
		return err
	}
	var waiting atomic.Bool
	ctx := locktrace.With(context.Background(), &locktrace.Trace{
		Waiting: func(_ context.Context, i locktrace.WaitingInfo) {
			if i.Subscribed && !waiting.Swap(true) {
				fmt.Fprintln(out, "waiting")
			}
		},
		Woken: func(_ context.Context, i locktrace.WokenInfo) {
			if stops && waiting.Load() && i.By == locktrace.ByRelease {
				fmt.Fprintln(out, "woken")
				select {}
			}
		},
	})
	lock, err := locker.Chain(bare, locker.Must(retry.New(retry.Config{}))).Acquire(ctx, all(strategy, name, time.Minute))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "held", lock.Fence())
	obey(ctx, lock, nil, in, out)
	return nil
}

// startWaiter starts a waiter, which waits when startWaiter returns.
func startWaiter(t *testing.T, provider, strategy string, target drivertest.Target, name string, stops bool) *holder {
	t.Helper()
	w := spawn(t, "waiter", provider, strategy, string(target.Kind), strings.Join(target.Addrs, ","), name, fmt.Sprint(stops))
	if got := w.hear(); got != "waiting" {
		t.Fatalf("the waiter says %q", got)
	}
	return w
}

// turns checks that waiters hold one after the other.
type turns struct {
	holds atomic.Int32
	fence atomic.Int64
}

// begin records that a waiter has the lock.
func (o *turns) begin(fence int64) error {
	if n := o.holds.Add(1); n != 1 {
		return fmt.Errorf("%d hold", n)
	}
	if last := o.fence.Swap(fence); fence <= last {
		return fmt.Errorf("fencing token %d after %d", fence, last)
	}
	return nil
}

// end records that it is about to release it.
func (o *turns) end() { o.holds.Add(-1) }

// inTurn waits until every waiter had the lock, and returns how long the longest wait was between
// two of them.
func (o *turns) inTurn(t *testing.T, waiters []*holder) time.Duration {
	t.Helper()
	type turn struct {
		at  time.Time
		err error
	}
	had := make(chan turn, len(waiters))
	for _, w := range waiters {
		go func() {
			var err error
			if !w.lines.Scan() {
				err = fmt.Errorf("the waiter ended: %w", w.lines.Err())
			} else if err = w.isHeld(w.lines.Text()); err == nil {
				err = o.begin(w.fence)
				o.end()
				_, _ = fmt.Fprintln(w.in, "release")
			}
			had <- turn{time.Now(), err}
		}()
	}
	longest, last := time.Duration(0), time.Now()
	for range waiters {
		limit := time.NewTimer(turnLimit + slack)
		select {
		case one := <-had:
			limit.Stop()
			if one.err != nil {
				t.Fatal(one.err)
			}
			longest, last = max(longest, one.at.Sub(last)), one.at
		case <-limit.C:
			t.Fatalf("no waiter got the lock in %v", turnLimit+slack)
		}
	}
	for _, w := range waiters {
		if got := w.hear(); got != "released false" {
			t.Errorf("a waiter's release says %q", got)
		}
	}
	return longest
}
