-- Acquires, acquires again for the same owner, or finds that an earlier send of the same acquire
-- did. Needs next_fence, store_fence, holds, open, the queue.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- KEYS[n]  the last one: the queue of waiters, if the caller has a place in it or the order is
--          strict
-- ARGV[1]  the hold's token
-- ARGV[2]  TTL of the hold, ms
-- ARGV[3]  TTL of the counter, ms; '0' if the hold is not fenced
-- ARGV[4]  owner
-- ARGV[5]  note; may be empty
-- ARGV[6]  how long the caller has waited, ms; -1: it does not wait
-- ARGV[7]  how much longer it waits at most, ms; empty: without end
-- ARGV[8]  its place in the queue; 'all': it is woken with all of these; empty: it does not
--          wait
-- ARGV[9]  its delivery (see the queue)
-- ARGV[10] the channel to wake waiters on
-- ARGV[11] if the order is strict: how long the next waiter of the caller's process has waited, ms,
--          or -1 if there is none; empty: the order is not strict
-- reply    {1, fence}             acquired by this call
--          {2, fence}             acquired by an earlier send of this call
--          {0, owner, note, ms, again}
--                                 held: by whom; the time until its last hold ends, and until the
--                                 next attempt at the latest, ms; '', '', -1 if the lock is free,
--                                 but kept for another waiter
--          {0, owner, note, ms, again, 1}
--                                 released by that holder, but the name stays taken for ms
--          {-1, text}             the counter holds something else: text
--          {-2, text}             the key holds something else: text
--          fence is a decimal string, '0' if the hold is not fenced
local counter = ARGV[3] ~= '0' and KEYS[2] or nil
local queue = KEYS[counter and 3 or 2]
local id, fair = ARGV[8], ARGV[11] ~= ''
local own = queue and has_place(id) -- the caller has a place of its own
local lock, other = open(KEYS[1])
if other then
  return other
end

-- refuse(owner, note, left, rest) returns the refusal, and leaves the caller in the queue if it waits.
local function refuse(owner, note, left, rest)
  return {0, owner, note, left, enqueue(queue, id, ARGV[9], ARGV[6], ARGV[7], rest or left)}
end

local found
if lock then
  local theirs = lock.owner ~= ARGV[4]
  found = find_holder(lock, theirs)
  if broken or hold_end(lock, ARGV[1]) and broken then
    return unknown
  end
  if theirs and found.token then
    local refusal = refuse(shown(lock.owner), shown(lock.note), math.max(found.till, lock.keep) - lock.now)
    store_found(lock, found) -- last: it may end the key if the hold has expired meanwhile
    return refusal
  end
  if not found.token and lock.keep > lock.now then
    local refusal = refuse(shown(lock.owner), shown(lock.note), lock.keep - lock.now)
    refusal[6] = 1
    return refusal
  end
end
local rest = queue and (own or fair) and not (found and found.token) and kept_for(queue, ARGV[10], id, fair, ARGV[6])
if rest then
  return refuse('', '', -1, rest)
end
local tenure = found and found.token -- the owner holds already
local again = tenure and hold_end(lock, ARGV[1]) -- an earlier send made the hold
local fence, last = '0', nil
if counter and not again then
  fence, last = next_fence(counter)
  if not fence then
    return {-1, last}
  end
  fence = tenure and lock.fence or fence
end
if own then
  leave_place(queue, id, ARGV[9], ARGV[11])
end
if again then
  return {2, counter and lock.fence or '0'}
end
if counter then
  store_fence(counter, fence, last, ARGV[3])
end

if tenure then
  write_hold(lock, ARGV[1], lock.now + tonumber(ARGV[2]))
  if counter and not lock.fence then
    redis.call('HSET', KEYS[1], 'fence', fence)
  end
  sweep(lock)
  return {1, fence}
end

local till = clock() + tonumber(ARGV[2])
local fields = {'kind', 'reentrant', 'owner', ARGV[4], 'last', ARGV[1], ARGV[1], format_ms(till)}
if ARGV[5] ~= '' then
  fields[#fields + 1] = 'note'
  fields[#fields + 1] = ARGV[5]
end
if counter then
  fields[#fields + 1] = 'fence'
  fields[#fields + 1] = fence
end
return write_lock(lock, KEYS[1], fields, till) or {1, fence}
