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
	"github.com/holdfast-go/holdfast/strategies/single"
)

// The mutants are strategies/single with other lines in its scripts.
func TestMutantsWithPlaces(t *testing.T) {
	t.Parallel()
	const (
		alone    = "a release wakes the first waiter alone"
		ordered  = "a fair lock is first come, first served"
		unpassed = "nobody passes the waiters of a fair lock"
	)
	var suspects []suspect
	for _, m := range []struct {
		name          string
		fair          bool
		sound, flawed string
		caught        []string
	}{
		{
			name:   "a release that wakes all waiters",
			sound:  "  local first = wake_first(queue, channel, own)",
			flawed: "  local first for _, id in ipairs(redis.call('ZRANGE', queue, 0, -1)) do deliver(channel .. ':' .. id, 0) end",
			caught: []string{alone},
		},
		{
			name:   "a release that wakes who has not tried for longest",
			sound:  "digits(now - math.max(tonumber(waited), 0) * 1000)",
			flawed: "digits(now)",
			caught: []string{alone},
		},
		{
			name:   "a release that publishes for nobody",
			sound:  "  redis.call('DEL', KEYS[1])\n  return 2",
			flawed: "  redis.call('DEL', KEYS[1]) redis.pcall('PUBLISH', ARGV[2], '')\n  return 2",
			caught: []string{"nobody waits and nobody is told"},
		},
		{
			name:   "an Inspect that counts all members of the queue",
			sound:  "digits(from), digits(to)",
			flawed: "'-inf', digits(to)",
			caught: []string{"Inspect counts the waiters"},
		},
		{
			name:   "a wake-up lost to a dead waiter",
			sound:  "return delivery == 0 or heard ~= 0",
			flawed: "return true",
			caught: []string{"a dead waiter passes the wake-up on"},
		},
		{
			name:   "a waiter that was woken and may take its time",
			sound:  "local time_to_try = 500",
			flawed: "local time_to_try = 60000",
			caught: []string{"a frozen waiter delays the next one only"},
		},
		{
			name:   "a waiter that was woken and has no advantage",
			sound:  "if first and first ~= id and score < 0 then",
			flawed: "if false then",
			caught: []string{"a woken waiter goes before other waiters"},
		},
		{
			name:   "an acquire of a waiter that looks at nothing",
			sound:  "  if left ~= -2 then",
			flawed: "  if left ~= -2 and not own then",
			caught: []string{"foreign libraries contend beside the queue", alone},
		},
		{
			name: "a fair release that wakes the newest waiter", fair: true,
			sound:  "digits(now - math.max(tonumber(waited), 0) * 1000)",
			flawed: "digits(3e15 - now + math.max(tonumber(waited), 0) * 1000)",
			caught: []string{ordered},
		},
		{
			name: "a fair lock that is kept for nobody", fair: true,
			sound:  "redis.call('SET', KEYS[1], reserved(first), 'PX', time_to_try)",
			flawed: "",
			caught: []string{unpassed},
		},
	} {
		suspects = append(suspects, suspect{m.name, singleWith(t, m.fair, m.sound, m.flawed), singleWith(t, m.fair, "", ""), m.caught})
	}
	convict(t, suspects)
}

// singleWith is strategies/single with flawed in place of sound in its scripts, one of which must
// have that.
func singleWith(t *testing.T, fair bool, sound, flawed string) *Harness {
	return &Harness{
		Dial: dialWith(t, sound, flawed),
		New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			return single.New(drv, single.Config{AttemptTimeout: bound.Attempt, Fair: fair})
		},
		Can: Capabilities{Fair: fair},
	}
}

// scriptsWith is the default strategies with flawed in place of sound in their scripts.
func scriptsWith(t *testing.T, sound, flawed string) *Harness {
	return &Harness{Dial: dialWith(t, sound, flawed)}
}

// dialWith makes drivers that run scripts with flawed in place of sound. One of them must have
// that.
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
