package simulate

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// pauses are the default ones of middleware/retry, but drawn from a seed: a schedule can be
// repeated.
type pauses struct {
	random *rand.Rand
	next   time.Duration
}

// The pauses of middleware/retry.
const (
	firstPause   = 5 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// pausesOf returns the policy of one client.
func pausesOf(seed uint64, client int) func() backoff.BackOff {
	var acquires atomic.Uint32
	return func() backoff.BackOff {
		p := &pauses{random: rand.New(rand.NewPCG(seed, uint64(client)<<32|uint64(acquires.Add(1))))}
		p.Reset()
		return p
	}
}

// NextBackOff implements backoff.BackOff: from half to one and a half of a doubling pause.
func (p *pauses) NextBackOff() time.Duration {
	d := p.next/2 + time.Duration(p.random.Int64N(int64(p.next)))
	p.next = min(2*p.next, longestPause)
	return d
}

// Reset implements backoff.BackOff.
func (p *pauses) Reset() { p.next = firstPause }
