-- Raises the fencing token of the tenure to at least a given one, while a hold lasts. Needs
-- next_fence, raise_fence, holds, open.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter
-- ARGV[1]  the hold's token
-- ARGV[2]  the fencing token to raise it to, decimal
-- ARGV[3]  TTL of the counter, ms
-- reply    {1, fence}   the fencing token as it is now
--          {0}          not held
--          {-1, text}   the counter holds something else: text
--          {-2, text}   the key also holds something else: text
local lock, other = open(KEYS[1])
if other then
  return other.err and other or {0}
end
if not lock or not live_end(lock, ARGV[1]) then
  return {0}
end
if broken then
  return unknown
end
local fence, last = next_fence(KEYS[2])
if not fence then
  return {-1, last}
end
local higher = lock.fence and tonumber(lock.fence) > tonumber(ARGV[2]) -- if the counter was lost
fence = raise_fence(KEYS[2], higher and lock.fence or ARGV[2], last, ARGV[3])
if fence ~= lock.fence then
  redis.call('HSET', KEYS[1], 'fence', fence)
end
return {1, fence}
