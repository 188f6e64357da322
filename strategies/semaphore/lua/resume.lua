-- Takes a hold over: replaces its value by a new one with the same permits. It never shortens the
-- lease. Needs mint_fence, lock.
-- KEYS[1]  the semaphore
-- KEYS[2]  the fence counter, if the hold is fenced
-- ARGV[1]  the new value
-- ARGV[2]  TTL of the hold, ms
-- ARGV[3]  TTL of the counter, ms
-- ARGV[4]  the value to replace
-- reply    {1, fence}   taken over by this call; if fenced, with a new fencing token
--          {2, fence}   taken over by an earlier send of this call
--          {0}          not held: the hold was removed or has expired
--          {-1, text}   the counter holds something else: text
--          {-2, text}   the key holds something else: text
local lock, other = open(KEYS[1])
if other then
  return other.err and other or {0}
end
local again = lock and end_of(lock, ARGV[1])
local till = live_end(lock, ARGV[4])
if not again and not till then
  return {0}
end
local fence, text = mint_fence(KEYS[2], ARGV[3])
if not fence then
  return {-1, text}
end
if again then
  return {2, fence}
end
till = math.max(till, lock.now + tonumber(ARGV[2]))
redis.call('ZREM', KEYS[1], ARGV[4])
redis.call('ZADD', KEYS[1], whole(till), ARGV[1])
keep(lock, till)
return {1, fence}
