-- Acquires, or finds that an earlier send of the same acquire did. Needs most, read, reserved,
-- next_fence, the queue.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- KEYS[n]  the last one: the queue of waiters, if the caller waits or the order is strict; without
--          it nobody is queued, and the lock is kept for nobody
-- ARGV[1]  our value
-- ARGV[2]  TTL of the lock, ms
-- ARGV[3]  TTL of the counter, ms; '0' if the hold is not fenced
-- ARGV[4]  how long the caller has waited, ms; -1: it does not wait
-- ARGV[5]  how much longer it waits at most, ms; empty: without end
-- ARGV[6]  its ID in the queue; 'all': it has no place of its own; empty: it does not wait
-- ARGV[7]  how it is woken: its delivery (see the queue)
-- ARGV[8]  the channel to wake waiters on
-- ARGV[9]  if the order is strict: how long the next waiter of the caller's process has waited, ms,
--          or -1 if there is none; empty: the order is not strict
-- reply    {1, fence}               acquired by this call
--          {2, fence}               acquired by an earlier send of this call
--          {0, value, ms, again}    held, or reserved for another waiter: what is stored, '' if it
--                                   is too long to be ours; its PTTL; the time until the next
--                                   attempt at the latest, ms, negative if unknown
--          {0, '~', -1, again}      free, but kept for another waiter
--          {-1, text}               the counter holds something else: text
--          fence is a decimal string, '0' if the hold is not fenced
local counter = ARGV[3] ~= '0' and KEYS[2] or nil
local queue = KEYS[counter and 3 or 2]
local id, fair = ARGV[6], ARGV[9] ~= ''
local own = queue and has_place(id) -- the caller has a place of its own
local found = read(KEYS[1], most)
if type(found) == 'table' then
  return found
end

-- refuse(value, left, rest) returns the reply of a refusal, and enqueues the caller if it waits.
local function refuse(value, left, rest)
  return {0, value, left, enqueue(queue, id, ARGV[7], ARGV[4], ARGV[5], rest or left)}
end

local held = found == ARGV[1]
local left = held or redis.call('PTTL', KEYS[1])
local mine = own and found == reserved(id)
if not held and not mine then
  if left ~= -2 and not (own and is_reserved(found, id) and passes(queue, id, now_us(), ARGV[4])) then
    return refuse(#found > most and '' or found, left)
  end
  local rest = left == -2 and queue and (own or fair) and kept_for(queue, ARGV[8], id, fair, ARGV[4])
  if rest then
    return refuse('~', -1, rest)
  end
end
local fence, last = '0', nil
if counter then
  fence, last = next_fence(counter)
  if not fence then
    return {-1, last}
  end
end
if own then
  leave_place(queue, id, ARGV[7], ARGV[9])
end
if held and (last or not counter) then
  return {2, last or '0'}
end
if counter then
  redis.call('SET', counter, fence, 'PX', ARGV[3])
end
if held then
  return {2, fence}
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, fence}
