-- Extends the lease of a hold. It never shortens one and never brings one back. It writes whenever it
-- replies 1, even if nothing changes: a WAIT behind it then speaks for all earlier writes. The fence
-- counter has no TTL, so there is nothing to extend. Needs is_held.
-- KEYS[1]  the lock
-- ARGV[1]  our field
-- ARGV[2]  TTL of the lock, ms
-- reply    1 extended, 0 not ours
local held, wrong = is_held(KEYS[1], ARGV[1])
if wrong then
  return wrong
end
if not held then
  return 0
end
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2]))))
return 1
