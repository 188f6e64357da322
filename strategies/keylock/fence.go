package keylock

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// ReadLua defines the Lua function read(key, most), which bounds how much of a string a script
// reads. Put it before a script that uses it.
//
//go:embed lua/read.lua
var ReadLua string

//go:embed lua/next_fence.lua
var nextFenceLua string

//go:embed lua/store_fence.lua
var storeFenceLua string

// FenceLua defines the Lua functions next_fence(key) and store_fence(key, fence, last, ttl), which
// mint fencing tokens. Put it, behind [ReadLua], before a script that mints.
//
// A token is minted once per tenure (free to held). The tokens of a name strictly increase through
// restarts, FLUSHALL and failovers, unless the counter is lost and the new server's clock runs
// behind as well. See Kleppmann, "How to do distributed locking" (2016), for what they are for.
var FenceLua = nextFenceLua + storeFenceLua

// maxFence is the highest token: the counter is a double in Lua, and the next one must be exact
// too.
const maxFence = 1<<53 - 2

// counterLife is the expiry of the counter of a lock that may last for another ttl.
func counterLife(ttl time.Duration) time.Duration { return ttl + 24*time.Hour }

// counterKey returns the key of the counter of a lock's key.
func counterKey(key string) string {
	counter, _ := driver.Sibling(key, driver.FenceSuffix)
	return counter
}

// parseFence parses a token that a script returned.
func parseFence(text string) (int64, error) {
	fence, err := strconv.ParseInt(text, 10, 64)
	if err != nil || fence < 0 {
		return 0, fmt.Errorf("script returned %q for a fencing token", text)
	}
	return fence, nil
}

// errCounter: the key of the fence counter holds something else, which was left alone.
var errCounter = errors.New("fence counter is not a number")
