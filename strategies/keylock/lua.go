package keylock

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
)

// The parts of the Lua that scripts share. A part may need an earlier one.
var (
	//go:embed lua/read.lua
	readLua string

	//go:embed lua/mint_fence.lua
	mintFenceLua string

	//go:embed lua/renew_fence.lua
	renewFenceLua string

	//go:embed lua/queue.lua
	queueLua string

	//go:embed lua/waiters.lua
	waitersLua string

	parts = []luaPart{
		newPart(readLua), newPart(mintFenceLua), newPart(renewFenceLua), newPart(queueLua), newPart(waitersLua),
	}
)

// Lua returns script behind the functions of this package that it calls.
//
// For fencing tokens there are
//
//   - read(key, most), a bounded read of a string;
//   - current_fence(key), which reads the counter;
//   - mint_fence(key, ttl), and its two halves, next_fence(key) and store_fence(key, fence, last,
//     ttl);
//   - raise_fence(key, fence, last, ttl);
//   - renew_fence(key, ttl), which keeps the counter alive.
//
// A token is minted when a free name is acquired. The tokens of a name strictly increase through
// restarts, FLUSHALL and failovers, unless the counter is lost and the new server's clock runs
// behind as well. See Kleppmann, "How to do distributed locking" (2016), for their use.
//
// For the queue of waiters at the server, with [Spec].Queue, there are
//
//   - enqueue(queue, id, delivery, waited, patience, left), for a refused attempt;
//   - leave_place(queue, id, delivery, next), for a successful one;
//   - kept_for(queue, channel, id, fair, waited): for how long a free lock is kept for another waiter,
//     ms; nil: id may have it;
//   - wake(queue, channel, own), for a release, and its two halves, wake_all and wake_first;
//   - add_waiters(reply, queue), which adds the number of waiters to the reply of Inspect.
//
// delivery is the driver.Delivery to the waiter.
func Lua(script string) string {
	for _, p := range slices.Backward(parts) {
		if p.calls.MatchString(script) {
			script = p.lua + script
		}
	}
	return script
}

// luaPart is Lua that defines functions.
type luaPart struct {
	lua   string
	calls *regexp.Regexp // matches a script that calls one of them
}

var definition = regexp.MustCompile(`(?m)^local function (\w+)`)

func newPart(lua string) luaPart {
	var names []string
	for _, found := range definition.FindAllStringSubmatch(lua, -1) {
		names = append(names, found[1])
	}
	return luaPart{lua, regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\(`)}
}
