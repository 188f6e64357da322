package conformance

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/conformance/internal/suitetest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// The mutants of this file are strategies with other lines in their scripts.

func TestMutantsOfSingle(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	// Fencing tokens.
	m.script(singleWith, "a late raise that counts",
		"if held ~= ARGV[1] then\n  return {0}\nend\nlocal fence, last = next_fence(KEYS[2])",
		"local fence, last = next_fence(KEYS[2])", "a token is raised while the lock is held")
	m.script(singleWith, "a raise that lowers",
		"if not last or tonumber(last) < tonumber(fence) then\n    return store_fence(key, fence, last, ttl)",
		"if true then\n    return store_fence(key, fence, nil, ttl)", "a token is raised while the lock is held")
	m.script(singleWith, "a renewal that forgets the fence counter", "renew_fence(KEYS[2], ARGV[3])\nreturn 1",
		"return 1", "the counter outlives the lock by a day")
	m.script(singleWith, "a fence counter that stays for ever", "redis.call('SET', counter, fence, 'PX', ARGV[3])",
		"redis.call('SET', counter, fence)", "the counter outlives the lock by a day")
	// The queue of waiters.
	m.script(singleWith, "a release that wakes all waiters", "  local first = wake_first(queue, channel, own)",
		"  local first for _, id in ipairs(redis.call('ZRANGE', queue, 0, -1)) do deliver(channel .. ':' .. id, 0) end",
		"a release wakes the first waiter alone")
	m.script(singleWith, "a release that wakes who has not tried for longest",
		"digits(now - math.max(tonumber(waited), 0) * 1000)", "digits(now)", "a release wakes the first waiter alone")
	m.script(singleWith, "a release that publishes for nobody", "  redis.call('DEL', KEYS[1])\n  return 2",
		"  redis.call('DEL', KEYS[1]) redis.pcall('PUBLISH', ARGV[2], '')\n  return 2",
		"nobody waits and nobody is told")
	m.script(singleWith, "an Inspect that counts all members of the queue", "digits(from), digits(to)",
		"'-inf', digits(to)", "Inspect counts the waiters")
	m.script(singleWith, "a wake-up lost to a dead waiter", "return delivery == 0 or heard ~= 0", "return true",
		"a dead waiter passes the wake-up on")
	m.script(singleWith, "a waiter that was woken and may take its time", "local time_to_try = 500",
		"local time_to_try = 60000", "a frozen waiter delays the next one only")
	m.script(singleWith, "a waiter that was woken and has no advantage",
		"if first and first ~= id and score < 0 then", "if false then", "a woken waiter goes before other waiters")
	m.script(singleWith, "a waiter that misses wake-ups and is woken again", "local marked_for = 30000",
		"local marked_for = 0", "a deaf waiter does not stall others")
	m.script(singleWith, "a refusal of a free lock that says to poll rarely", "rest or left", "left",
		"a woken waiter goes before other waiters")
	m.script(singleWith, "an acquire of a waiter that looks at nothing", "  if left ~= -2 and not (own",
		"  if left ~= -2 and not own and not (own", "foreign libraries contend beside the queue",
		"a release wakes the first waiter alone")
	m.script(fairWith, "a fair release that wakes the newest waiter",
		"digits(now - math.max(tonumber(waited), 0) * 1000)",
		"digits(3e15 - now + math.max(tonumber(waited), 0) * 1000)", "a fair lock is first come, first served")
	m.script(fairWith, "a fair lock that is kept for nobody",
		"redis.call('SET', KEYS[1], reserved(first), 'PX', time_to_try)", "",
		"nobody passes the waiters of a fair lock")
	m.script(singleWith, "a script that does not recognize what it acquired", "local held = found == ARGV[1]",
		"local held = false", "several names whose reply is lost are acquired once")
	// Keys of other types.
	m.script(scriptsWith, "a key of another type taken for a holder",
		" and string.sub(text.err, 1, 9) ~= 'WRONGTYPE' then\n    text = redis.pcall('GET', key) or ''",
		" then\n    text = '?'", "a key of another type is an error")
	m.script(scriptsWith, "a release that deletes what it cannot read",
		"  return held\nend\nif leaves and KEYS[2] then",
		"  return redis.call('DEL', KEYS[1])\nend\nif leaves and KEYS[2] then",
		"a key that changed its type is a lost lock")
	m.script(scriptsWith, "a counter without a number that counts as none", "return nil, 'no number'", "last = nil",
		"a fence key without a number is an error")
	m.script(scriptsWith, "a renewal of whatever is in place of the counter",
		"if type(counter) == 'string' and string.match(counter, '^%d+$') and #counter <= 16\n      and", "if key and",
		"a fence key that changed its type is left alone")
	// Resumes.
	m.script(scriptsWith, "a resume that keeps the token", "redis.call('SET', KEYS[1], ARGV[1], 'PX', string",
		"redis.call('PEXPIRE', KEYS[1], string", "resume takes a hold over", "one of many resumes wins",
		"resume takes a quorum's hold over")
	m.script(scriptsWith, "a resume of any hold", "if held ~= ARGV[1] and held ~= ARGV[4] then", "if held == '' then",
		"resume of a lost hold is refused")
	m.script(scriptsWith, "a resume that compares the beginning", "held ~= ARGV[4] then",
		"string.sub(held, 1, #ARGV[4]) ~= ARGV[4] then", "a resume compares the whole value")
	m.script(scriptsWith, "a resume that does not recognize its own value", "held ~= ARGV[1] and held ~= ARGV[4]",
		"held ~= ARGV[4]", "a resume whose reply is lost succeeds")
	m.convict()
}

func TestMutantsOfRWHash(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	m.script(rwhashWith, "an upgrade beside other readers", "  found = find_holder(lock, false, ARGV[1])",
		"  found = {}", "only the sole reader upgrades")
	m.script(rwhashWith, "a resent conversion taken for one that came too late",
		"if tonumber(number) > tonumber(ARGV[3]) then", "if tonumber(number) >= tonumber(ARGV[3]) then",
		"a conversion whose reply is lost is done once")
	m.script(rwhashWith, "conversions in any order", "if tonumber(number) > tonumber(ARGV[3]) then", "if false then",
		"a conversion that runs late changes nothing")
	m.script(rwhashWith, "a resume that ignores the mode of its handle",
		" or not noting and (lock.writer == ARGV[4]) == shared then", " then", "a handle has the mode of its lock")
	m.script(rwhashWith, "a fencing token for each reader", "if shared and last and tonumber(last) > 0 then",
		"if false then", "readers have the last writer's token")
	m.script(rwhashWith, "an upgrade that keeps the token of the readers", "writer_fence(not mine)",
		"writer_fence(false)", "an upgrade mints a token")
	m.script(rwhashWith, "readers that pass a waiting writer", "  if lock.now < lock.bar + bound then",
		"  if false then", "a waiting writer gets in although readers keep coming")
	const gaveUp = "a waiter that gave up keeps nobody out"
	m.script(rwhashWith, "a writer that leaves its place when it gives up", "  remove_waiter(queue, ARGV[3])", "", gaveUp)
	m.script(rwhashWith, "a writer that gives up and wakes nobody",
		"  elseif leaves and waiting and not lock.writer and", "  elseif false and", gaveUp)
	m.script(rwhashWith, "readers that wait for long and are forgotten", "return id == 'all' and math.min(left, again) or left",
		"return left", "a release wakes a waiter that has waited for long")
	m.script(rwhashWith, "a turn of readers that have given up", "return found, received", "return found, found", gaveUp)
	m.script(rwhashWith, "an attempt that keeps others out without waiting", "enqueue(queue, place, ARGV[10],",
		"enqueue(queue, place == '' and 'writers' or place, ARGV[10],", "an attempt that does not wait keeps nobody out")
	m.script(rwhashWith, "a downgrade that wakes no reader", "has_waiters(queue) and wake_readers(queue, ARGV[4])", "false",
		"a downgrade wakes readers")
	m.script(rwhashWith, "a renewal that restores a hold",
		"local till = parse_end(value)\nif not till or till <= lock.now then",
		"local till = parse_end(value)\nif not till then", "a hold that ended stays ended beside others")
	m.script(rwhashWith, "a resume of a hold that ended", "if not till or till <= lock.now or not noting and",
		"if not till or not noting and", "a hold that ended stays ended beside others")
	m.script(rwhashWith, "an undo of a hold that ended",
		"if not till or till <= lock.now then\n  return 0\nend\nrename_hold",
		"if not till then\n  return 0\nend\nrename_hold", "a hold that ended stays ended beside others")
	m.script(rwhashWith, "each release is published", "  if found.token or broken then\n",
		"  if found.token or broken then\n    redis.call('PUBLISH', ARGV[2], '')\n",
		"only the last of several releases is published")
	m.script(rwhashWith, "a renewal that shortens a hold",
		"math.max(till, lock.now + tonumber(ARGV[2])), string.match", "lock.now + tonumber(ARGV[2]), string.match",
		"no operation shortens a lease")
	m.script(rwhashWith, "a resume that shortens a hold",
		"math.max(till, lock.now + tonumber(ARGV[2])), format_value", "lock.now + tonumber(ARGV[2]), format_value",
		"no operation shortens a lease")
	m.script(rwhashWith, "a counter that lives as long as the last lease",
		"local kept = math.max(tonumber(ttl), redis.call('PTTL', key))", "local kept = tonumber(ttl)",
		"no operation shortens the counter's life")
	m.script(rwhashWith, "a raise that leaves the counter's life",
		"  if redis.call('PTTL', key) < tonumber(ttl) then\n    redis.call('PEXPIRE', key, ttl)\n  end\n  return last",
		"  return last", "no operation shortens the counter's life")
	m.script(rwhashWith, "a counter beyond what Lua counts", " or tonumber(last) >= 9007199254740991", "",
		"a counter without a number fails only what needs it")
	m.script(rwhashWith, "a note that a resume keeps", "if ARGV[6] ~= '' or noting then", "if noting then",
		"a resume can change the note")
	m.script(rwhashWith, "a new token of a resumed reader", "    fence = last\n  end\n  store_fence",
		"    fence = fence\n  end\n  store_fence", "a resumed reader keeps its token")
	m.script(rwhashWith, "an upgrade refused by nobody", "refusal = refuse_by(lock, 3, found)",
		"refusal = {3, '', '', found.till - lock.now}", "a refused upgrade names the other reader")
	m.script(rwhashWith, "a refused upgrade that is not counted",
		"redis.call('HSET', KEYS[1], ARGV[1], format_ms(till) .. format_value(ARGV[3], owner, note))",
		"if not refusal then redis.call('HSET', KEYS[1], ARGV[1], format_ms(till) .. format_value(ARGV[3], owner, note)) end",
		"a refused upgrade stays refused")
	m.script(rwhashWith, "a resume that forgets the conversions",
		"return {2, current_fence(KEYS[2]), tonumber(number)}", "return {2, current_fence(KEYS[2]), 0}",
		"conversions go on after a resume")
	m.script(rwhashWith, "a downgrade that wakes nobody", "has_waiters(queue) and wake_readers(queue, ARGV[4])", "false",
		"only a downgrade is published")
	m.script(rwhashWith, "a downgrade of a reader that wakes", "if shared and mine then", "if shared then",
		"only a downgrade is published")
	m.script(rwhashWith, "a Break that ends one reader", "      tokens[#tokens + 1] = fields[i]",
		"      tokens[1] = fields[i]", "Break ends all readers")
	m.script(rwhashWith, "a Break that leaves the fencing token", "if ARGV[1] and fence ~= '0' then", "if false then",
		"Break ends all readers", "readers after a Break have a higher fencing token")
	m.script(rwhashWith, "a Break of a writer that leaves the fencing token", "if ARGV[1] and fence ~= '0' then",
		"if ARGV[1] and fence ~= '0' and not lock.writer then", "readers after a Break have a higher fencing token")
	m.script(rwhashWith, "a note of a reader that cannot be removed", "if ARGV[6] ~= '' or noting then",
		"if ARGV[6] ~= '' then", "a note can be changed")
	m.convict()
}

func TestMutantsOfReentrant(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	m.script(reentrantWith, "a token for each hold", "fence = tenure and lock.fence or fence", "fence = fence",
		"the holds of an owner have one token")
	m.script(reentrantWith, "a token that the owner's later holds do not have",
		"  if counter and not lock.fence then", "  if false then", "the holds of an owner have one token")
	m.script(reentrantWith, "a raise that only the counter remembers",
		"  redis.call('HSET', KEYS[1], 'fence', fence)\nend\nreturn {1, fence}", "end\nreturn {1, fence}",
		"the holds of an owner have one token")
	m.script(reentrantWith, "a raise that relies on the counter", "higher and lock.fence or ARGV[2]", "ARGV[2]",
		"the holds of an owner have one token")
	m.script(reentrantWith, "a Break that ends one hold of an owner", "      tokens[n] = fields[i]",
		"      tokens[1] = fields[i]", "Break ends all holds of an owner")
	m.script(reentrantWith, "a Break that leaves a minimum hold", "    tokens[n + 1] = kept_name(lock)",
		"    tokens[n + 1] = string.rep('x', 22)", "Break ends a minimum hold")
	m.script(reentrantWith, "a note of an owner that cannot be removed", "elseif ARGV[7] == '' then",
		"elseif false then", "a note can be changed")
	m.convict()
}

func TestMutantsOfSemaphore(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	m.script(semaphoreWith, "a hold counts as one permit", "  lock.used = lock.used + wanted",
		"  lock.used = lock.used + 1", "permits are limited")
	m.script(semaphoreWith, "one permit more than there are", "not again and free(lock) < wanted then",
		"not again and free(lock) + 1 < wanted then", "permits are limited")
	m.script(semaphoreWith, "permits of the dead are never free", "  while lock.limit - used < wanted do",
		"  while false do", "permits return at the end of a lease")
	m.script(semaphoreWith, "an acquire that is sent again counts again",
		"local again = lock and end_of(lock, ARGV[1])", "local again = false",
		"permits whose reply is lost count once")
	m.script(semaphoreWith, "a release that is sent again counts again", "if till or #lock.dead > 0 then",
		"lock.used = till and lock.used or lock.used - permits_of(ARGV[1])\nif true then",
		"a release of permits whose reply is lost counts once")
	m.script(semaphoreWith, "small requests pass a large one",
		"local rest = not again and kept_for(queue, ARGV[8], id, true, ARGV[4])", "local rest = false", "a large request is not starved")
	m.script(semaphoreWith, "a release wakes one waiter", "if unused > 0 then", "if false then",
		"a release wakes all who fit")
	m.script(semaphoreWith, "any limit will do",
		"if lock.limit ~= limit and ARGV[11] ~= '1' and live_holds(lock) > 0 then", "if false then",
		"two limits are an error")
	m.script(semaphoreWith, "a resume takes the permits again", "redis.call('ZREM', KEYS[1], ARGV[4])",
		"store((function() lock.used = lock.used + permits_of(ARGV[4]) return lock end)())",
		"a resumed hold keeps its permits")
	m.script(semaphoreWith, "Inspect forgets the permits of a hold", "holds, 0, lock.limit, lock.used}",
		"holds, 0, lock.limit, holds}", "Inspect reports free permits")
	m.script(semaphoreWith, "a release before MinHold that frees the permits", "elseif till then\n  lock.used",
		"end\nif till then\n  lock.used", "permits stay taken for MinHold")
	m.script(semaphoreWith, "a release before MinHold that still counts as a hold",
		"holds - kept_holds(lock) - lock.kept", "holds", "permits stay taken for MinHold")
	m.script(semaphoreWith, "all holders have one token", "  fence, last = next_fence(counter)\n  if not fence then",
		"  fence, last = next_fence(counter)\n  fence = lock and last or fence\n  if not fence then",
		"each hold of permits has a higher token")
	m.script(semaphoreWith, "a Break that ends one hold of permits", "    reply[#reply + 1] = value",
		"    reply[8] = value", "Break ends all permits")
	m.convict()
}

// singleWith is strategies/single with flawed in place of sound in its scripts. At least one must
// contain sound.
func singleWith(t *testing.T, sound, flawed string) *Harness {
	return &Harness{Dial: dialWith(t, sound, flawed), New: newSingle}
}

// fairWith is singleWith for a fair lock.
func fairWith(t *testing.T, sound, flawed string) *Harness {
	return &Harness{
		Dial: dialWith(t, sound, flawed), Can: Capabilities{Fair: true},
		New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			return single.New(drv, single.Config{AttemptTimeout: bound.Attempt, Fair: true})
		},
	}
}

func reentrantWith(t *testing.T, sound, flawed string) *Harness {
	return &Harness{
		Dial: dialWith(t, sound, flawed), Can: Capabilities{Reentrant: true, Hash: true, MinHold: true}, New: newReentrant,
	}
}

func rwhashWith(t *testing.T, sound, flawed string) *Harness {
	return &Harness{
		Dial: dialWith(t, sound, flawed), Can: Capabilities{Shared: true, Convert: true, Hash: true, MinHold: true}, New: newRWHash,
	}
}

func semaphoreWith(t *testing.T, sound, flawed string) *Harness {
	return &Harness{
		Dial: dialWith(t, sound, flawed),
		NewSemaphore: func(drv driver.Driver, permits int, bound Timeouts) (locker.Locker, error) {
			return semaphore.New(drv, semaphore.Config{Permits: permits, AttemptTimeout: bound.Attempt})
		},
	}
}

// scriptsWith is the default strategies with flawed in place of sound in their scripts.
func scriptsWith(t *testing.T, sound, flawed string) *Harness {
	return &Harness{Dial: dialWith(t, sound, flawed)}
}

// dialWith makes drivers that run scripts with flawed in place of sound. At least one must contain
// sound.
func dialWith(t *testing.T, sound, flawed string) func(testing.TB, drivertest.Target) (driver.Driver, error) {
	var found atomic.Bool
	t.Cleanup(func() {
		if !found.Load() {
			t.Errorf("no script has %q", sound)
		}
	})
	return dialEval(
		func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
			if strings.Contains(s.Source(), sound) {
				found.Store(true)
			}
			return d.Eval(ctx, driver.NewScript(strings.Replace(s.Source(), sound, flawed, 1)), keys, args)
		})
}

// dialEval makes drivers that run scripts by eval.
func dialEval(
	eval func(context.Context, driver.Driver, *driver.Script, []string, []string) (driver.Reply, error),
) func(testing.TB, drivertest.Target) (driver.Driver, error) {
	d := suitetest.Driver{OnEval: eval}
	return func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
		return d.Dial(tb, suite.Target(target))
	}
}

func newReentrant(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
	return reentrant.New(drv, reentrant.Config{AttemptTimeout: bound.Attempt})
}

func newRWHash(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
	return rwhash.New(drv, rwhash.Config{AttemptTimeout: bound.Attempt})
}

// around makes a Harness of a strategy with wrap around it.
func around(
	open func(driver.Driver, Timeouts) (locker.Locker, error), can Capabilities, wrap func(locker.Locker, driver.Driver) locker.Locker,
) *Harness {
	return &Harness{Dial: plain, Can: can, New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
		l, err := open(drv, bound)
		return wrap(l, drv), err
	}}
}

// aroundRedlock makes a Harness of strategies/redlock with wrap around it.
func aroundRedlock(wrap func(l locker.Locker, nodes []locker.Locker) locker.Locker) *Harness {
	return &Harness{Dial: plain, NewQuorum: func(nodes []locker.Locker, need int, bound Timeouts) (locker.Locker, error) {
		l, err := newRedlock(nodes, need, bound)
		return wrap(l, nodes), err
	}}
}
