-- Raises the fencing token of a hold to at least a given one, while the hold lasts. Needs read,
-- next_fence, raise_fence.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter
-- ARGV[1]  our value
-- ARGV[2]  the token to raise it to, decimal
-- ARGV[3]  TTL of the counter, ms
-- reply    {1, fence}   the token as it is now
--          {0}          not ours
--          {-1, text}   the counter holds something else: text
local held = read(KEYS[1], #ARGV[1])
if type(held) == 'table' then
  return held
end
if held ~= ARGV[1] then
  return {0}
end
local fence, last = next_fence(KEYS[2])
if not fence then
  return {-1, last}
end
return {1, raise_fence(KEYS[2], ARGV[2], last, ARGV[3])}
