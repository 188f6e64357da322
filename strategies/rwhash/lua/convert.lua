-- Turns a hold into one of the other mode. To shared always, and those who wait are told; to exclusive only where nobody else
-- holds. The lease stays as it is. Needs next_fence, store_fence, holds, lock, turns.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter; absent: not fenced
-- ARGV[1]  the hold's token
-- ARGV[2]  'exclusive' or 'shared'
-- ARGV[3]  the conversion's number, counted by the holder
-- ARGV[4]  the channel to publish on
-- ARGV[5]  TTL of the counter, ms
-- ARGV[6]  for how long the readers have their turn after a writer, ms
-- reply    {1, fence}             done by this call, or nothing to do; to exclusive and fenced with the writer's fencing token,
--                                 minted anew where a reader became the writer, else '0'
--          {2, fence}             done by an earlier send of this call
--          {0}                    not held
--          {3, owner, note, ms}   refused: who else holds, and for how long; empty and -1 where it was an earlier send of this
--                                 call that was refused
--          {4}                    a conversion with a higher number was there before
--          {-1, text}             the counter holds something else: text
--          {-2, text}             the key holds something else besides: text
local lock, other = open(KEYS[1], ARGV[1])
if other then
  return other.err and other or {0}
end
local till = lock and till_of(lock.own)
if not till or till <= lock.now then
  return {0}
end
local number, owner, note = parts(lock.own)
local shared, mine, refusal = ARGV[2] == 'shared', lock.writer == ARGV[1], nil
if tonumber(number) > tonumber(ARGV[3]) then
  return {4}
end

-- token(minted) returns the writer's fencing token, minted where it is to be or where the counter is gone; nil and what is
-- there where that is no counter.
local function token(minted)
  if not KEYS[2] then
    return '0'
  end
  local fence, last = next_fence(KEYS[2])
  if not fence then
    return nil, last
  end
  if last and not minted then
    return last
  end
  store_fence(KEYS[2], fence, last, ARGV[5])
  return fence
end

local again = tonumber(number) == tonumber(ARGV[3]) -- executed before: what it came to shows in the mode
if again and mine == shared then
  return {3, '', '', -1}
end
local fence, wrong, found = '0', nil, nil
if not shared and not mine then
  found = holder(lock, false, ARGV[1])
  if found.token then
    refusal = because(lock, 3, found)
  end
end
if broken then
  return unknown
end
if not shared and not refusal then
  fence, wrong = token(not mine)
  if not fence then
    return {-1, wrong}
  end
end
if again then
  return {2, fence}
end

-- The number is stored whatever the outcome: a send of this conversion that arrives later is to change nothing.
unbounded(lock)
redis.call('HSET', KEYS[1], ARGV[1], text(till) .. value(ARGV[3], owner, note))
if refusal then
  return refusal
end
if shared and mine then
  pass(lock, lock.now, tonumber(ARGV[6]))
  redis.pcall('PUBLISH', ARGV[4], '')
elseif not shared and not mine then
  redis.call('HDEL', KEYS[1], 'rough', 'wwant', 'wowner', 'wnote', 'bar', 'turn', 'long')
  redis.call('HSET', KEYS[1], 'writer', ARGV[1], 'last', ARGV[1])
  purge(lock, found.dead)
  lock.needed = math.max(lock.rwant, lock.hwant)
  expire(lock, till)
end
return {1, fence}
