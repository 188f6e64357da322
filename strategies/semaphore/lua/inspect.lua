-- Reads who holds. Needs lock.
-- KEYS[1]  the semaphore
-- reply    {1, value, ms, holds, 0, limit, used}
--                       the live hold that ends last, and what is left of its lease, ms; the
--                       number of live holds; 0: exclusive; the limit, and the permits that the
--                       live holds have
--          {0}          nobody holds
--          {-2, text}   the key holds something else: text
local lock, other = open(KEYS[1])
if other then
  return other
end
local holds = lock and redis.call('ZCOUNT', KEYS[1], '(' .. whole(lock.now), '+inf') or 0
if holds == 0 then
  return {0}
end
if not find_ended(lock, math.huge) then
  return unknown
end
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
return {1, last[1], tonumber(last[2]) - lock.now, holds, 0, lock.limit, lock.used}
