-- Raises the fence counter to at least a given token, if the hold is live. Needs next_fence,
-- raise_fence, lock.
-- KEYS[1]  the semaphore
-- KEYS[2]  the fence counter
-- ARGV[1]  the hold's value
-- ARGV[2]  the fencing token to raise it to, decimal
-- ARGV[3]  TTL of the counter, ms
-- reply    {1, fence}   the counter as it is now
--          {0}          not held
--          {-1, text}   the counter holds something else: text
local lock, other = open(KEYS[1])
if other then
  return other.err and other or {0}
end
if not live_end(lock, ARGV[1]) then
  return {0}
end
local fence, last = next_fence(KEYS[2])
if not fence then
  return {-1, last}
end
return {1, raise_fence(KEYS[2], ARGV[2], last, ARGV[3])}
