package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// masters is how many servers a quorum is measured over.
const masters = 5

// BenchmarkQuorum is acquire and release of a free name at a quorum of five servers, beside the
// same at one of them through the same client; and with one of the five frozen, beside none.
func BenchmarkQuorum(b *testing.B) {
	servers := redistest.StartN(b, masters, redistest.Options{})
	for _, c := range clients {
		b.Run(c.name+"/beside=single", func(b *testing.B) {
			nodes := openAll(b, c, servers)
			compareLockers(b, locker.Must(redlock.New(nodes, redlock.Config{})), nodes[0], false)
		})
		b.Run(c.name+"/beside=single/fenced", func(b *testing.B) {
			nodes := openAll(b, c, servers)
			compareLockers(b, locker.Must(redlock.New(nodes, redlock.Config{})), nodes[0], true)
		})
		b.Run(c.name+"/frozen=1/beside=none", func(b *testing.B) {
			nodes, others := openAll(b, c, servers), openAll(b, c, servers)
			// The frozen node is one that no answer comes from: those who are beside it have a node
			// that runs in its place.
			frozen := redistest.Start(b, redistest.Options{})
			drv, _ := c.open(b, frozen.Addr())
			b.Cleanup(func() { _ = drv.Close() })
			nodes[masters-1] = locker.Must(single.New(drv, single.Config{}))
			if err := frozen.Freeze(); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = frozen.Thaw() })
			compareLockers(b, locker.Must(redlock.New(nodes, redlock.Config{})), locker.Must(redlock.New(others, redlock.Config{})), false)
		})
	}
}

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

// compareLockers runs cycles of two Lockers in turn, each on a name of its own.
func compareLockers(b *testing.B, l, other locker.Locker, fenced bool) {
	b.Helper()
	pair(b, 1, cycleOf(l, "bench:quorum", fenced), cycleOf(other, "bench:beside", fenced))
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

// BenchmarkQuorumFloor is a quorum beside what it cannot do without: the bare client's cycle at all
// five servers at once. The quorum makes each command wait for others, and the cycles do not.
func BenchmarkQuorumFloor(b *testing.B) {
	servers := redistest.StartN(b, masters, redistest.Options{})
	for _, c := range clients {
		b.Run(c.name, func(b *testing.B) {
			nodes := openAll(b, c, servers)
			var bare []func(ctx context.Context, key, token string) error
			for _, s := range servers {
				drv, cycle := c.open(b, s.Addr())
				b.Cleanup(func() { _ = drv.Close() })
				bare = append(bare, cycle)
			}
			l := locker.Must(redlock.New(nodes, redlock.Config{}))
			pair(b, 1, cycleOf(l, "bench:quorum", false), func(int) error {
				token := lease.NewToken()
				errs := make(chan error, masters)
				for _, cycle := range bare {
					go func() { errs <- cycle(context.Background(), "bench:beside", token) }()
				}
				var all error
				for range masters {
					all = errors.Join(all, <-errs)
				}
				return all
			})
		})
	}
}
