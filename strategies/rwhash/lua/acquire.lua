-- Acquires, or finds that an earlier send of the same acquire did. Needs next_fence, store_fence,
-- holds, lock, the queue, turns.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- KEYS[n]  the last one: the queue of waiters
-- ARGV[1]  the hold's token
-- ARGV[2]  TTL of the hold, ms
-- ARGV[3]  TTL of the counter, ms; '0' if the hold is not fenced
-- ARGV[4]  owner
-- ARGV[5]  note; may be empty
-- ARGV[6]  'exclusive' or 'shared'
-- ARGV[7]  how long the caller has waited, ms; -1: it does not wait
-- ARGV[8]  how much longer it waits at most, ms; empty: without end
-- ARGV[9]  its place in the queue: its ID, or its group (see turns); empty: it does not wait
-- ARGV[10] its delivery (see the queue)
-- ARGV[11] the channel to wake waiters on
-- ARGV[12] how long the next waiter of the caller's process has waited, ms; -1: there is none
-- ARGV[13] how long at a time waiting writers keep new readers out, ms
-- reply    {1, fence, 0}          acquired by this call
--          {2, fence, 0}          acquired by an earlier send of this call
--          {0, owner, note, left, again}
--                                 refused: the holder, what is left of its lease, ms, and the time
--                                 until the next attempt at the latest, ms; '', '', -1 if the lock
--                                 is kept for waiters; then 1 if that holder has released and the
--                                 name stays taken
--          {-1, text}             the counter holds something else: text
--          {-2, text}             the key holds something else: text
--          fence is a decimal string, '0' if the hold is not fenced
local counter = ARGV[3] ~= '0' and KEYS[2] or nil
local queue = KEYS[counter and 3 or 2]
local shared, waited, place, channel, bound = ARGV[6] == 'shared', ARGV[7], ARGV[9], ARGV[11], tonumber(ARGV[13])
local lock, other = open(KEYS[1], ARGV[1])
if other then
  return other
end
local again = lock and parse_end(lock.own) and not broken -- an earlier send made the hold

-- refuse(owner, note, left, rest) returns the refusal, and puts the caller into the queue if it waits.
local function refuse(owner, note, left, rest)
  local patience = ARGV[8]
  if place == 'writers' then
    patience = math.min(tonumber(patience) or writers_count_for, writers_count_for)
    rest = math.min(rest, writers_count_for / 2)
  end
  return {0, owner, note, left, enqueue(queue, place, ARGV[10], waited, patience, rest)}
end

local welcome = shared and lock and (in_turn(lock) or lock.bar > lock.now) -- it need not look at who waits
local waiting = not again and not welcome and has_waiters(queue)
local found
if lock and not again then
  if lock.writer then
    found = {token = lock.writer, till = lock.held, known = true}
  elseif not shared or waiting then
    found = find_holder(lock, false)
  end
  last_end(lock)
end
if broken then
  return unknown
end
local held = found and found.token
if held and (lock.writer or not shared) then
  local refusal = refuse_by(lock, 0, found)
  refusal = refuse(refusal[2], refusal[3], refusal[4], refusal[4])
  refusal[6] = is_kept(held) and 1 or nil
  if shared and tonumber(waited) >= bound then
    redis.pcall('HSET', KEYS[1], 'long', '1')
  end
  store_found(lock, found) -- last: it may end the key if the hold has expired meanwhile
  return refusal
end

local rest, begins -- for how long the lock is kept for others; the readers' turn begins
if not shared and in_turn(lock) then
  rest = lock.turn - lock.now
elseif waiting then
  need_memory(queue)
  if held then
    rest = time_barred(lock, queue, bound)
    if not rest then
      wake_all(queue, channel) -- they may enter too
    end
  else
    rest, begins = time_kept(queue, channel, place, shared, waited)
  end
end
if begins and not shared then
  local till = clock() + rest
  local failed = write_lock(lock, KEYS[1], {'kind', 'rwhash', 'turn', format_ms(till)}, till)
  if failed then
    return failed
  end
end
if rest then
  return refuse('', '', -1, rest)
end

local fence, last = '0', nil
if counter and not again then
  fence, last = next_fence(counter)
  if not fence then
    return {-1, last}
  end
  if shared and last and tonumber(last) > 0 then
    fence = last
  end
end
if again then
  return {2, current_fence(counter), 0}
end
if lock and not waiting then
  need_memory(KEYS[1])
end
if counter then
  store_fence(counter, fence, last, ARGV[3])
end
if queue and has_place(place) then
  leave_place(queue, place, ARGV[10], ARGV[12])
elseif queue and place == 'writers' then
  redis.pcall('ZREM', queue, '~writers0', '~writers2') -- others count again with their next attempt
end
local hold = format_value('0', ARGV[4], ARGV[5])
if lock and shared then
  if lock.gone then
    redis.call('HDEL', KEYS[1], 'writer', 'long', lock.gone)
  end
  if begins or in_turn(lock) and lock.bar ~= lock.turn then
    redis.call('HDEL', KEYS[1], 'turn')
    redis.call('HSET', KEYS[1], 'bar', format_ms(lock.now + herd))
    lock.needed = 0
  end
  write_hold(lock, ARGV[1], lock.now + tonumber(ARGV[2]), hold)
  sweep(lock)
  return {1, fence, 0}
end

local till = clock() + tonumber(ARGV[2])
local fields = {'kind', 'rwhash', 'last', ARGV[1], ARGV[1], format_ms(till) .. hold}
if not shared then
  fields[7], fields[8] = 'writer', ARGV[1]
elseif begins then
  fields[7], fields[8] = 'bar', format_ms(till - tonumber(ARGV[2]) + herd)
end
return write_lock(lock, KEYS[1], fields, till) or {1, fence, 0}
