package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// masters is how many servers a quorum is measured over.
const masters = 5

func openAll(b *testing.B, c client, servers []*redistest.Server) []locker.Locker {
	b.Helper()
	var nodes []locker.Locker
	for _, s := range servers {
		drv, _ := c.open(b, s.Addr())
		b.Cleanup(func() { _ = drv.Close() })
		nodes = append(nodes, locker.Must(single.New(drv, single.Config{})))
	}
	return nodes
}

// cycleOf acquires and releases.
func cycleOf(l locker.Locker, name string, fenced bool) func(int) error {
	return func(int) error {
		for {
			lock, err := l.Acquire(context.Background(), locker.Request{Name: name, TTL: ttl, Fenced: fenced})
			switch {
			case errors.Is(err, locker.ErrNotAcquired): // the cycle before has not left all nodes
			case err != nil:
				return err
			default:
				return lock.Release(context.Background())
			}
		}
	}
}

// BenchmarkQuorumFloor is a quorum beside its indispensable part: the bare client's cycle at all
// five servers at once. The quorum makes each command wait for others, and the cycles do not. Each
// goroutine has its own name.
func BenchmarkQuorumFloor(b *testing.B) {
	servers := redistest.StartN(b, masters, redistest.Options{})
	for _, c := range clients {
		b.Run(c.name, func(b *testing.B) {
			nodes := openAll(b, c, servers)
			var bare []bareCycle
			for _, s := range servers {
				drv, cycle := c.open(b, s.Addr())
				b.Cleanup(func() { _ = drv.Close() })
				bare = append(bare, cycle)
			}
			l := locker.Must(redlock.New(nodes, redlock.Config{}))
			for _, n := range []int{1, 64} {
				b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
					var quorums []func(int) error
					for i := range n {
						quorums = append(quorums, cycleOf(l, fmt.Sprintf("bench:quorum:%d", i), false))
					}
					pair(b, n, func(i int) error { return quorums[i](i) }, func(i int) error {
						key, token, errs := fmt.Sprintf("bench:beside:%d", i), lease.NewToken(), make(chan error, masters)
						for _, cycle := range bare {
							go func() { errs <- cycle(context.Background(), key, token) }()
						}
						var all error
						for range masters {
							all = errors.Join(all, <-errs)
						}
						return all
					})
				})
			}
		})
	}
}
