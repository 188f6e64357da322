package redlock_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// Tokens strictly increase over quorums of any nodes, although the nodes' counters differ and each
// time other nodes are down, late, or held by another.
func TestTokensIncrease(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ n, quorum int }{{3, 2}, {4, 3}, {5, 3}, {5, 4}, {5, 5}} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprintf("%d of %d, seed %d", of.quorum, of.n, seed), func(t *testing.T) {
				inMemory(t, of.n, redlock.Config{Quorum: of.quorum}, func(t *testing.T, c *cluster) {
					random := rand.New(rand.NewPCG(seed, uint64(of.n*10+of.quorum)))
					var last int64
					ahead := 0
					for range effort.Of(10, 10, 40) {
						last, ahead = tokenAfter(t, c, random, of.n-of.quorum, last, ahead)
					}
				})
			})
		}
	}
}

// tokenAfter acquires with spare nodes out of order, of which the one that is ahead of the others
// is the first, and demands a token above last. It returns that, and which node is ahead now.
func tokenAfter(t *testing.T, c *cluster, random *rand.Rand, spare int, last int64, ahead int) (int64, int) {
	t.Helper()
	order := random.Perm(len(c.nodes))
	for i, k := range order {
		if k == ahead {
			order[0], order[i] = k, order[0]
		}
	}
	ahead = order[len(order)-1]
	match(t, mint(c.nodes[ahead].Locker, 30)) // as if it had counted elsewhere
	var others []*locker.Lock
	for i, k := range order {
		n := c.nodes[k]
		n.set(func(n *node) { n.delay, n.down = time.Duration(random.IntN(5))*ms, nil })
		if i >= spare {
			continue
		}
		switch random.IntN(3) {
		case 0:
			n.set(func(n *node) { n.down = errDown })
		case 1:
			others = append(others, n.Hold(locker.Request{Name: name, TTL: time.Hour}))
		default:
			n.set(func(n *node) { n.delay = time.Second })
		}
	}
	lock := c.acquire(locker.Request{Fenced: true})
	if lock.Fence() <= last {
		t.Fatalf("the token went from %d to %d", last, lock.Fence())
	}
	if random.IntN(2) == 0 { // the late ones join, what was missed is restored
		sleep(2 * time.Second)
		match(t, lock.Renew(t.Context(), 0))
		sleep(2 * time.Second)
	}
	fence := lock.Fence()
	match(t, lock.Release(t.Context()))
	for _, other := range others {
		match(t, other.Release(bg))
	}
	sleep(5 * time.Second)
	c.free("after the release")
	return fence, ahead
}
