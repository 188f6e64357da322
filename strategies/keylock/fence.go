package keylock

import (
	_ "embed"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Lua functions for scripts with fencing tokens. Put [ReadLua] before a script, and the others that
// it needs behind ReadLua.
//
// A token is minted when a free name is acquired. The tokens of a name strictly increase through
// restarts, FLUSHALL and failovers, unless the counter is lost and the new server's clock runs
// behind as well. See Kleppmann, "How to do distributed locking" (2016), for their use.
var (
	// ReadLua defines read(key, most), a bounded read of a string, and current_fence(key), which
	// reads the counter and needs no other function.
	//
	//go:embed lua/read.lua
	ReadLua string

	// MintFenceLua defines next_fence(key), store_fence(key, fence, last, ttl), mint_fence(key,
	// ttl) (both in one), and raise_fence(key, fence, last, ttl).
	//
	//go:embed lua/mint_fence.lua
	MintFenceLua string

	// RenewFenceLua defines renew_fence(key, ttl), to keep the counter alive.
	//
	//go:embed lua/renew_fence.lua
	RenewFenceLua string
)

// maxFence is the highest token: the counter is a double in Lua, and the next one must be exact
// too.
const maxFence = 1<<53 - 2

// counterLife is how long the counter is kept after its lock has ended.
const counterLife = 24 * time.Hour

// counterKey returns the key of the counter of a lock's key.
func counterKey(key string) string {
	counter, _ := driver.Sibling(key, driver.FenceSuffix)
	return counter
}
