-- Extends the lease of a hold. It never shortens a lease and never revives an expired one. It
-- writes whenever it replies 1, even if nothing changes: a WAIT sent after it then covers all
-- earlier writes. Needs renew_fence, lock.
-- KEYS[1]  the semaphore
-- KEYS[2]  the fence counter, if the hold is fenced
-- ARGV[1]  the hold's value
-- ARGV[2]  TTL of the hold, ms
-- ARGV[3]  TTL of the counter, ms
-- reply    1 extended, 0 not held
local lock, other = open(KEYS[1])
if other then
  return other.err and other or 0
end
local till = live_end(lock, ARGV[1])
if not till then
  return 0
end
till = math.max(till, lock.now + tonumber(ARGV[2]))
redis.call('ZREM', KEYS[1], ARGV[1]) -- it needs no memory, and allows the next write where there is none
redis.call('ZADD', KEYS[1], whole(till), ARGV[1])
keep(lock, till)
renew_fence(KEYS[2], ARGV[3])
return 1
