-- Raises the fencing token of a hold to at least a given one, while the hold lasts. The counter gets
-- no TTL. Needs is_held, next_fence.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter
-- ARGV[1]  our field
-- ARGV[2]  the token to raise it to, decimal
-- reply    {1, fence}   the token as it is now
--          {0}          not ours
--          {-1, text}   the counter holds something else: text
local held, wrong = is_held(KEYS[1], ARGV[1])
if wrong then
  return wrong
end
if not held then
  return {0}
end
local fence, last = next_fence(KEYS[2])
if not fence then
  return {-1, last}
end
if last and tonumber(last) >= tonumber(ARGV[2]) then
  return {1, last}
end
redis.call('SET', KEYS[2], ARGV[2])
return {1, ARGV[2]}
