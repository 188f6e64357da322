package keylock

import (
	_ "embed"
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

	parts = []string{readLua, mintFenceLua, renewFenceLua, queueLua, waitersLua}
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
	for _, part := range slices.Backward(parts) {
		if callsOne(script, part) {
			script = part + script
		}
	}
	return script
}

// callsOne reports whether script calls a function that part defines. It runs when a program starts,
// for each script: a regular expression would take a hundred times as long.
func callsOne(script, part string) bool {
	for line := range strings.Lines(part) {
		if rest, defines := strings.CutPrefix(line, "local function "); defines {
			if name, _, _ := strings.Cut(rest, "("); calls(script, name) {
				return true
			}
		}
	}
	return false
}

// calls reports whether script has a "(" behind the word name.
func calls(script, name string) bool {
	for {
		before, after, found := strings.Cut(script, name+"(")
		if !found || before == "" || !isWordByte(before[len(before)-1]) {
			return found
		}
		script = after
	}
}

func isWordByte(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
}
