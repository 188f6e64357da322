package conformance

import "testing"

// The mutants are strategies/single with other lines in its scripts.
func TestMutantsOfFences(t *testing.T) {
	t.Parallel()
	var suspects []suspect
	for _, m := range []struct {
		name          string
		sound, flawed string
		caught        string
	}{
		{
			"a late raise that counts",
			"if held ~= ARGV[1] then\n  return {0}\nend\nlocal fence, last = next_fence(KEYS[2])",
			"local fence, last = next_fence(KEYS[2])",
			"a token is raised while the lock is held",
		},
		{
			"a raise that lowers",
			"if not last or tonumber(last) < tonumber(fence) then\n    return store_fence(key, fence, last, ttl)",
			"if true then\n    return store_fence(key, fence, nil, ttl)",
			"a token is raised while the lock is held",
		},
		{
			"a renewal that forgets the fence counter",
			"renew_fence(KEYS[2], ARGV[3])\nreturn 1", "return 1",
			"the counter outlives the lock by a day",
		},
		{
			"a fence counter that stays for ever",
			"redis.call('SET', counter, fence, 'PX', ARGV[3])", "redis.call('SET', counter, fence)",
			"the counter outlives the lock by a day",
		},
	} {
		flawed, sound := singleWith(t, false, m.sound, m.flawed), singleWith(t, false, "", "")
		suspects = append(suspects, suspect{m.name, flawed, sound, []string{m.caught}})
	}
	convict(t, suspects)
}
