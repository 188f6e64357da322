package conformance

import (
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// The mutants are strategies/semaphore with other lines in its scripts.
func TestMutantsWithPermits(t *testing.T) {
	t.Parallel()
	var suspects []suspect
	for _, m := range []struct {
		name          string
		sound, flawed string
		caught        []string
	}{
		{
			"a hold counts as one permit",
			"  lock.used = lock.used + wanted", "  lock.used = lock.used + 1",
			[]string{"permits are limited"},
		},
		{
			"one permit more than there are",
			"not again and free(lock) < wanted then", "not again and free(lock) + 1 < wanted then",
			[]string{"permits are limited"},
		},
		{
			"permits of the dead are never free",
			"  while lock.limit - used < wanted do", "  while false do",
			[]string{"permits return at the end of a lease"},
		},
		{
			"an acquire that is sent again counts again",
			"local again = lock and end_of(lock, ARGV[1])", "local again = false",
			[]string{"permits whose reply is lost count once"},
		},
		{
			"a release that is sent again counts again",
			"if till or #lock.dead > 0 then", "lock.used = till and lock.used or lock.used - permits_of(ARGV[1])\nif true then",
			[]string{"a release of permits whose reply is lost counts once"},
		},
		{
			"small requests pass a large one",
			"if not again and kept_for(queue, ARGV[8], id, true) then", "if false then",
			[]string{"a large request is not starved"},
		},
		{
			"a release wakes one waiter",
			"if unused > 0 then", "if false then",
			[]string{"a release wakes all who fit"},
		},
		{
			"any limit will do",
			"if lock.limit ~= limit and ARGV[11] ~= '1' and live_holds(lock) > 0 then", "if false then",
			[]string{"two limits are an error"},
		},
		{
			"a resume takes the permits again",
			"redis.call('ZREM', KEYS[1], ARGV[4])", "store((function() lock.used = lock.used + permits_of(ARGV[4]) return lock end)())",
			[]string{"a resumed hold keeps its permits"},
		},
		{
			"Inspect forgets the permits of a hold",
			"holds, 0, lock.limit, lock.used}", "holds, 0, lock.limit, holds}",
			[]string{"Inspect reports free permits"},
		},
		{
			"a release before MinHold that frees the permits",
			"elseif till then\n  lock.used", "end\nif till then\n  lock.used",
			[]string{"permits stay taken for MinHold"},
		},
		{
			"a release before MinHold that still counts as a hold",
			"holds - kept_holds(lock) - lock.kept", "holds",
			[]string{"permits stay taken for MinHold"},
		},
		{
			"all holders have one token",
			"  fence, last = next_fence(counter)\n  if not fence then", "  fence, last = next_fence(counter)\n  fence = lock and last or fence\n  if not fence then",
			[]string{"each hold of permits has a higher token"},
		},
	} {
		suspects = append(suspects, suspect{m.name, semaphoreWith(t, m.sound, m.flawed), semaphoreWith(t, "", ""), m.caught})
	}
	convict(t, suspects)
}

// semaphoreWith is strategies/semaphore with flawed in place of sound in its scripts, one of which
// must have that.
func semaphoreWith(t *testing.T, sound, flawed string) *Harness {
	return &Harness{
		Dial: dialWith(t, sound, flawed),
		NewSemaphore: func(drv driver.Driver, permits int) (locker.Locker, error) {
			return semaphore.New(drv, semaphore.Config{Permits: permits, AttemptTimeout: AttemptTimeout})
		},
	}
}
