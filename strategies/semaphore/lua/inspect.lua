-- Reads who holds. Needs lock.
-- KEYS[1]  the semaphore
-- KEYS[3]  the queue of waiters; nil: their number is not known
-- ARGV[1]  'holds' to get the values too, by which the holds can be ended
-- reply    {1, value, ms, holds, 0, limit, used}
--                       the live hold that ends last, and what is left of its lease, ms; the
--                       number of live holds that are not kept; 0: exclusive; the limit, and the
--                       permits that all live holds have; then, if asked for, the values of all
--                       live holds
--          {0}          all permits are free
--          {-2, text}   the key holds something else: text
local function inspect()
  local lock, other = open(KEYS[1])
  if other then
    return other
  end
  local holds = lock and live_holds(lock) or 0
  if holds == 0 then
    return {0}
  end
  if not find_ended(lock, math.huge) then
    return unknown
  end
  local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
  holds = math.max(holds - kept_holds(lock) - lock.kept, 0)
  local reply = {1, last[1], tonumber(last[2]) - lock.now, holds, 0, lock.limit, lock.used}
  if ARGV[1] then
    for _, value in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. whole(lock.now), '+inf')) do
      reply[#reply + 1] = value
    end
  end
  return reply
end
return add_waiters(inspect(), KEYS[3])
