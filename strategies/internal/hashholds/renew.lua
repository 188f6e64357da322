-- Extends the lease of a hold. It never shortens one and never brings one back. It writes whenever
-- it replies 1, even if nothing changes: a WAIT behind it then speaks for all earlier writes. It
-- needs renew_fence, holds, open.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- ARGV[1]  the hold's token
-- ARGV[2]  TTL of the hold, ms
-- ARGV[3]  TTL of the counter, ms
-- reply    1 extended, 0 not held
local lock, other = open(KEYS[1])
if other then
  return other.err and other or 0
end
local value = lock and redis.call('HGET', KEYS[1], ARGV[1])
local till = parse_end(value)
if not till or till <= lock.now then
  return 0
end
allow_writes(lock)
write_hold(lock, ARGV[1], math.max(till, lock.now + tonumber(ARGV[2])), string.match(value, '^%d+(.*)$'))
renew_fence(KEYS[2], ARGV[3])
return 1
