// Package fencing mints fencing tokens beside a lock, in the same script and the same cluster slot.
//
// A token is minted once per tenure (free to held). Tokens of a name strictly increase through restarts, FLUSHALL and
// failovers, unless the counter is lost and the new server's clock runs behind as well. See Kleppmann, "How to do
// distributed locking" (2016), for what they are for.
package fencing

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// ReadLua defines read(key, most), which bounds what a script reads of a string.
//
//go:embed read.lua
var ReadLua string

// Lua defines next_fence(key). Put it before a script that mints, behind ReadLua.
//
//go:embed next_fence.lua
var Lua string

// afterUse is how long a counter is kept after its last use.
const afterUse = 24 * time.Hour

// Max is the highest token: the counter is a double in Lua, and the next one must be exact too.
const Max = 1<<53 - 2

// KeptFor is the expiry of a counter whose lock may last for ttl yet.
func KeptFor(ttl time.Duration) time.Duration { return ttl + afterUse }

// Key names the counter of a lock's key.
func Key(key string) string {
	fence, _ := driver.Sibling(key, driver.FenceSuffix)
	return fence
}

// Parse reads a token that a script returned.
func Parse(text string) (int64, error) {
	fence, err := strconv.ParseInt(text, 10, 64)
	if err != nil || fence < 0 {
		return 0, fmt.Errorf("script returned %q for a fencing token", text)
	}
	return fence, nil
}

// ErrCounter: the key of the fence counter holds something else, which was left alone.
var ErrCounter = errors.New("fence counter is not a number")

// CounterError says what a script found at key in place of a counter. It matches driver.ErrFinal.
func CounterError(key, found string) error {
	return driver.Final(fmt.Errorf("%w: key %q holds %s; it was left alone", ErrCounter, key, found))
}
