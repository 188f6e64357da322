//go:build unix

package death_test

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

const ttl = time.Second

// ends are the ways to end a holder.
var ends = []struct {
	name string
	end  func(*holder)
	// after is checked when another holds.
	after func(*testing.T, *holder)
}{
	{
		name: "killed",
		end:  func(h *holder) { h.signal(syscall.SIGKILL) },
	},
	{
		name: "frozen",
		end:  func(h *holder) { h.signal(syscall.SIGSTOP) },
		after: func(t *testing.T, h *holder) {
			h.signal(syscall.SIGCONT)
			check.Contains(t, "state of the holder that was frozen past its lease", h.tell("state"), "lost")
			check.Equal(t, "its release", h.tell("release"), "released true")
		},
	},
	{
		name: "forgetful",
		end: func(h *holder) {
			if got := h.tell("abandon"); got != "abandoned" {
				h.t.Fatalf("the holder says %q", got)
			}
		},
	},
}

// However the holder ends, waiters in other processes get the lock within its TTL, one after
// another, with increasing fencing tokens. A watchdog dies with its process.
func TestWaitersGetTheLockOfTheDead(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	addr := server.Get(t).Addr()
	for _, client := range clients.All {
		for strategy := range workload.Strategies {
			for _, end := range ends {
				for _, watched := range []bool{false, true} {
					if watched && end.name == "forgetful" {
						continue // as documented, it renews for as long as the process lives
					}
					title := strings.Join([]string{client.Name, strategy, end.name}, "/")
					if watched {
						title += "/watched"
					}
					t.Run(title, func(t *testing.T) {
						t.Parallel()
						h := start(t, client.Name, strategy, addr, t.Name(), ttl.String(), strconv.FormatBool(watched))
						for tries := 1; watched && !h.outlasts(); tries++ {
							if tries == 5 {
								t.Fatal("the watchdog loses the lock each time")
							}
							h = start(t, client.Name, strategy, addr, t.Name(), ttl.String(), "true")
						}
						bare, err := workload.Strategies[strategy].Open(client.Open(t, addr))
						check.Must(t, err)
						waiting := locker.Chain(bare, locker.Must(retry.New(retry.Config{})))
						//realtime:ok what a killed process leaves must end
						if _, err := bare.Acquire(t.Context(), locker.Request{Name: t.Name(), TTL: ttl}); err == nil && h.tell("state") == "held" {
							t.Fatal("two hold")
						}
						died := time.Now()
						end.end(h)
						last := h.fence
						for range 3 {
							last = next(t, waiting, strategy, died.Add(ttl+slack), last)
						}
						if end.after != nil {
							end.after(t, h)
						}
						// A dead holder's state and a late release have no effect.
						next(t, waiting, strategy, time.Now().Add(slack), last)
					})
				}
			}
		}
	}
}

// next is one more waiter. It must get the lock until a time, and releases it.
func next(t *testing.T, l locker.Locker, strategy string, until time.Time, last int64) (fence int64) {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), until)
	defer cancel()
	lock, err := l.Acquire(ctx, all(strategy, t.Name(), time.Minute))
	check.Must(t, err)
	check.AtLeast(t, "fencing token", lock.Fence(), last+1)
	check.Error(t, "release", lock.Release(t.Context()))
	return lock.Fence()
}
