package conformance

import "testing"

// TestBesideMutants breaks the scripts of strategies/rwhash and strategies/reentrant.
func TestBesideMutants(t *testing.T) {
	t.Parallel()
	var suspects []suspect
	for _, m := range []struct{ name, sound, flawed, caught string }{
		{
			"a renewal that restores a hold", "local till = parse_end(value)\nif not till or till <= lock.now then",
			"local till = parse_end(value)\nif not till then", "a hold that ended stays ended beside others",
		},
		{
			"a resume of a hold that ended", "if not till or till <= lock.now or not noting and", "if not till or not noting and",
			"a hold that ended stays ended beside others",
		},
		{
			"an undo of a hold that ended", "if not till or till <= lock.now then\n  return 0\nend\nrename_hold",
			"if not till then\n  return 0\nend\nrename_hold", "a hold that ended stays ended beside others",
		},
		{
			"each release is published", "  if found.token or broken then\n",
			"  if found.token or broken then\n    redis.call('PUBLISH', ARGV[2], '')\n",
			"only the last of several releases is published",
		},
		{
			"a renewal that shortens a hold", "math.max(till, lock.now + tonumber(ARGV[2])), string.match",
			"lock.now + tonumber(ARGV[2]), string.match", "no operation shortens a lease",
		},
		{
			"a resume that shortens a hold", "math.max(till, lock.now + tonumber(ARGV[2])), format_value",
			"lock.now + tonumber(ARGV[2]), format_value", "no operation shortens a lease",
		},
		{
			"a counter that lives as long as the last lease", "local kept = math.max(tonumber(ttl), redis.call('PTTL', key))",
			"local kept = tonumber(ttl)", "no operation shortens the counter's life",
		},
		{
			"a raise that leaves the counter's life", "  if redis.call('PTTL', key) < tonumber(ttl) then\n    redis.call('PEXPIRE', key, ttl)\n  end\n  return last",
			"  return last", "no operation shortens the counter's life",
		},
		{
			"a counter beyond what Lua counts", " or tonumber(last) >= 9007199254740991", "",
			"a counter without a number fails only what needs it",
		},
		{
			"a note that a resume keeps", "if ARGV[6] ~= '' or noting then", "if noting then", "a resume can change the note",
		},
		{
			"a new token of a resumed reader", "    fence = last\n  end\n  store_fence", "    fence = fence\n  end\n  store_fence",
			"a resumed reader keeps its token",
		},
		{
			"an upgrade refused by nobody", "refusal = refuse_by(lock, 3, found)", "refusal = {3, '', '', found.till - lock.now}",
			"a refused upgrade names the other reader",
		},
		{
			"a refused upgrade that is not counted", "redis.call('HSET', KEYS[1], ARGV[1], format_ms(till) .. format_value(ARGV[3], owner, note))",
			"if not refusal then redis.call('HSET', KEYS[1], ARGV[1], format_ms(till) .. format_value(ARGV[3], owner, note)) end",
			"a refused upgrade stays refused",
		},
		{
			"a resume that forgets the conversions", "return {2, current_fence(KEYS[2]), tonumber(number)}", "return {2, current_fence(KEYS[2]), 0}",
			"conversions go on after a resume",
		},
		{
			"a downgrade that wakes nobody", "    wake_all(queue, ARGV[4])\n  end\nelseif", "  end\nelseif", "only a downgrade is published",
		},
		{
			"a downgrade of a reader that wakes", "if shared and mine then", "if shared then", "only a downgrade is published",
		},
	} {
		with := func(sound, flawed string) *Harness {
			h := rwhashWith(t, sound, flawed)
			h.Can.Convert = true
			return h
		}
		suspects = append(suspects, suspect{m.name, with(m.sound, m.flawed), with("", ""), []string{m.caught}})
	}
	for _, m := range []struct{ name, sound, flawed string }{
		{"a token for each hold", "fence = tenure and lock.fence or fence", "fence = fence"},
		{"a token that the owner's later holds do not have", "  if counter and not lock.fence then", "  if false then"},
		{"a raise that only the counter remembers", "  redis.call('HSET', KEYS[1], 'fence', fence)\nend\nreturn {1, fence}", "end\nreturn {1, fence}"},
		{"a raise that relies on the counter", "higher and lock.fence or ARGV[2]", "ARGV[2]"},
	} {
		suspects = append(suspects, suspect{
			m.name, reentrantWith(t, m.sound, m.flawed), reentrantWith(t, "", ""), []string{"the holds of an owner have one token"},
		})
	}
	convict(t, suspects)
}
