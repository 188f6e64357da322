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
func counterKey(key string) string {
	counter, _ := sibling.Of(key, sibling.FenceSuffix)
	return counter
}
