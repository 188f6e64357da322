package keylock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/sibling"
)

// maxFence is the highest token: the counter is a double in Lua, and the next one must be exact
// too.
const maxFence = 1<<53 - 2

// counterLife is how long the counter is kept after its lock has ended.
const counterLife = 24 * time.Hour

// counterKey returns the key of the counter of a lock's key.
func (s *Spec) counterKey(key string) (counter string) {
	if s.Siblings != nil {
		counter, _, _ = s.Siblings(key)
		return counter
	}
	counter, _ = sibling.Of(key, sibling.FenceSuffix)
	return counter
}

// channel returns the channel of releases of a lock's key.
func (s *Spec) channel(key string) (channel string) {
	if s.Siblings != nil {
		_, channel, _ = s.Siblings(key)
		return channel
	}
	channel, _ = sibling.Of(key, sibling.WakeSuffix)
	return channel
}
