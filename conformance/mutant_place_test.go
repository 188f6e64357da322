package conformance

import (
	"context"
	"strings"
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
			sound:  "  return wake_first(queue, channel, own)",
			flawed: "  for _, id in ipairs(redis.call('ZRANGE', queue, 0, -1)) do deliver(channel .. ':' .. id, 0) end return nil",
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
			sound:  "if channel == '' or not has_waiters(queue) then",
			flawed: "if not has_waiters(queue) then redis.pcall('PUBLISH', channel, '')",
			caught: []string{"nobody waits and nobody is told"},
		},
		{
			name:   "a wake-up lost to a dead waiter",
			sound:  "if id == own or deliver(channel .. ':' .. id, delivery) then",
			flawed: "deliver(channel .. ':' .. id, delivery) if true then",
			caught: []string{"a dead waiter passes the wake-up on"},
		},
		{
			name:   "a waiter that was woken and may take its time",
			sound:  "now + score <= time_to_try * 1000",
			flawed: "true",
			caught: []string{"a frozen waiter delays the next one only"},
		},
		{
			name:   "a waiter that was woken and has no advantage",
			sound:  "if first ~= id and first and (fair or score < 0) then",
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
		suspects = append(suspects, suspect{m.name, singleWith(m.fair, m.sound, m.flawed), singleWith(m.fair, "", ""), m.caught})
	}
	convict(t, suspects)
}

// singleWith is strategies/single with flawed in place of sound in its scripts.
func singleWith(fair bool, sound, flawed string) *Harness {
	d := suitetest.Driver{OnEval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
		return d.Eval(ctx, driver.NewScript(strings.Replace(s.Source(), sound, flawed, 1)), keys, args)
	}}
	return &Harness{
		Dial: func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
			return d.Dial(tb, suite.Target(target))
		},
		New: func(drv driver.Driver) (locker.Locker, error) {
			return single.New(drv, single.Config{AttemptTimeout: attemptTimeout, Fair: fair})
		},
		Can: Capabilities{Fair: fair},
	}
}
