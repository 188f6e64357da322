-- Acquires permits, or finds that an earlier send of the same acquire did. Needs next_fence,
-- mint_fence, store_fence, lock, the queue.
-- KEYS[1]  the semaphore
-- KEYS[2]  the fence counter, if the hold is fenced
-- KEYS[n]  the last one, so 2 or 3: the queue of waiters
-- ARGV[1]  the hold's value
-- ARGV[2]  TTL of the hold, ms
-- ARGV[3]  TTL of the counter, ms; '0' if the hold is not fenced
-- ARGV[4]  how long the caller has waited, ms; -1: it does not wait
-- ARGV[5]  how much longer it waits at most, ms; empty: no bound
-- ARGV[6]  its ID in the queue; 'all': it has no place of its own, and is woken with all others
--          that have none; empty: it does not wait
-- ARGV[7]  its delivery (see the queue)
-- ARGV[8]  the channel to wake waiters on
-- ARGV[9]  how long the next waiter of the caller's process has waited, ms; -1: there is none
-- ARGV[10] the limit
-- ARGV[11] '1' if it replaces another limit
-- reply    {1, fence}           acquired by this call
--          {2, fence}           acquired by an earlier send of this call
--          {0, value, ms, again}
--                               too few permits are free: the hold that ends first, what is left of
--                               its lease, and the time to the next attempt at the latest, ms; the
--                               hold is '~' and its lease -1 if another waiter is first
--          {5, limit}           the semaphore has another limit: this one
--          {-1, text}           the counter holds something else: text
--          {-2, text}           the key holds something else: text
--          fence is a decimal string, '0' if the hold is not fenced
local counter = ARGV[3] ~= '0' and KEYS[2] or nil
local queue = KEYS[counter and 3 or 2]
local id, limit, wanted = ARGV[6], tonumber(ARGV[10]), permits_of(ARGV[1])
local lock, other = open(KEYS[1])
if other then
  return other
end

local again = lock and end_of(lock, ARGV[1]) -- an earlier send made the hold
if lock and not again then
  if lock.limit ~= limit and ARGV[11] ~= '1' and live_holds(lock) > 0 then
    return {5, lock.limit}
  end
  lock.limit = limit
  if not find_ended(lock, wanted) then
    return unknown
  end
end

-- refuse(value, left, rest) returns the refusal, and leaves the caller in the queue if it waits.
local function refuse(value, left, rest)
  if lock and (lock.limit ~= lock.stored or #lock.dead > 0) then
    store(lock)
  end
  return {0, value, left, enqueue(queue, id, ARGV[7], ARGV[4], ARGV[5], rest or left)}
end

if lock and not again and free(lock) < wanted then
  local first = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. whole(lock.now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if first[1] then
    return refuse(first[1], tonumber(first[2]) - lock.now)
  end
  lock.used = 0 -- no hold is left: something else removed one
end
local rest = not again and kept_for(queue, ARGV[8], id, true, ARGV[4])
if rest then
  return refuse('~', -1, rest)
end

local fence, last = '0', nil
if counter then
  fence, last = next_fence(counter)
  if not fence then
    return {-1, last}
  end
end
if counter then
  store_fence(counter, fence, last, ARGV[3])
end
if again then
  return {2, fence}
end
if queue and has_place(id) then
  leave_place(queue, id, ARGV[7], ARGV[9])
end
local unused = limit - wanted
if lock then
  local till = lock.now + tonumber(ARGV[2])
  lock.used = lock.used + wanted
  unused = free(lock)
  store(lock, whole(till), ARGV[1])
  keep(lock, till)
else
  local till = whole(clock() + tonumber(ARGV[2]))
  redis.call('ZADD', KEYS[1], whole(-limit), 'permits', whole(-1 - wanted), 'used', till, ARGV[1])
  local kept = redis.pcall('PEXPIREAT', KEYS[1], till)
  if kept ~= 1 then -- the user may not set an expiry: no semaphore stays without one
    redis.call('DEL', KEYS[1])
    return kept
  end
end
if unused > 0 then
  wake(queue, ARGV[8], '') -- there may be enough for the next waiter too
end
return {1, fence}
