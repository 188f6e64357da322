-- Converts a hold to the other mode. To shared always, which wakes the readers; to exclusive only
-- if nobody else holds. The lease stays as it is. Needs next_fence, store_fence, holds, lock, the
-- queue, turns.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- KEYS[n]  the last one: the queue of waiters; without it nobody is woken
-- ARGV[1]  the hold's token
-- ARGV[2]  'exclusive' or 'shared'
-- ARGV[3]  the conversion's number, counted by the holder
-- ARGV[4]  the channel to wake waiters on
-- ARGV[5]  TTL of the counter, ms; '0' if the hold is not fenced
-- reply    {1, fence}             done by this call, or nothing to do; to exclusive and fenced: the
--                                 writer's fencing token, a new one if a reader became the writer;
--                                 else '0'
--          {2, fence}             done by an earlier send of this call
--          {0}                    not held
--          {3, owner, note, ms}   refused: who else holds, and for how long; empty and -1 if an
--                                 earlier send of this call was refused; then the ms again and 1 if
--                                 that holder has released and the name stays taken
--          {4}                    a conversion with a higher number came before
--          {-1, text}             the counter holds something else: text
--          {-2, text}             the key also holds something else: text
local counter = ARGV[5] ~= '0' and KEYS[2] or nil
local queue = KEYS[counter and 3 or 2]
local lock, other = open(KEYS[1], ARGV[1])
if other then
  return other.err and other or {0}
end
local till = lock and parse_end(lock.own)
if not till or till <= lock.now then
  return {0}
end
local number, owner, note = parse_value(lock.own)
local shared, mine, refusal = ARGV[2] == 'shared', lock.writer == ARGV[1], nil
if tonumber(number) > tonumber(ARGV[3]) then
  return {4}
end

-- writer_fence(minted) returns the writer's fencing token: a new one with minted, or if the counter
-- is gone. It returns nil and a text if the key holds no counter.
local function writer_fence(minted)
  if not counter then
    return '0'
  end
  local fence, last = next_fence(counter)
  if not fence then
    return nil, last
  end
  if last and not minted then
    return last
  end
  store_fence(counter, fence, last, ARGV[5])
  return fence
end

local again = tonumber(number) == tonumber(ARGV[3]) -- executed before: the mode shows the outcome
if again and mine == shared then
  return {3, '', '', -1}
end
local fence, wrong, found = '0', nil, nil
if not shared and not mine then
  found = find_holder(lock, false, ARGV[1])
  if found.token then
    refusal = refuse_by(lock, 3, found)
    if is_kept(found.token) then
      refusal[5], refusal[6] = refusal[4], 1
    end
  end
end
if broken then
  return unknown
end
if not shared and not refusal then
  fence, wrong = writer_fence(not mine)
  if not fence then
    return {-1, wrong}
  end
end
if again then
  return {2, fence}
end

-- The number is stored even if the conversion is refused: another send of it that arrives later
-- then changes nothing.
allow_writes(lock)
redis.call('HSET', KEYS[1], ARGV[1], format_ms(till) .. format_value(ARGV[3], owner, note))
if refusal then
  return refusal
end
if shared and mine then
  redis.call('HDEL', KEYS[1], 'writer', 'long')
  if has_waiters(queue) and wake_readers(queue, ARGV[4]) then
    lock.needed = lock.now + time_to_try
    local turn = format_ms(lock.needed)
    redis.call('HSET', KEYS[1], 'turn', turn)
    if lock.long then
      redis.call('HSET', KEYS[1], 'bar', turn)
    end
    set_expiry(lock, till)
  end
elseif not shared and not mine then
  redis.call('HDEL', KEYS[1], 'rough', 'bar', 'turn', 'long')
  redis.call('HSET', KEYS[1], 'writer', ARGV[1], 'last', ARGV[1])
  remove_dead(lock, found.dead)
  lock.needed = 0
  set_expiry(lock, till)
end
return {1, fence}
