-- Takes a hold over: replaces its value by a new one. It never shortens the lease. Needs read,
-- next_fence, store_fence.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- ARGV[1]  our new value
-- ARGV[2]  TTL of the lock, ms
-- ARGV[3]  TTL of the counter, ms
-- ARGV[4]  the value to replace
-- reply    {1, fence}   taken over by this call
--          {2, fence}   taken over by an earlier send of this call
--          {0}          the hold is gone
--          {-1, text}   the counter holds something else: text
local held = read(KEYS[1], math.max(#ARGV[1], #ARGV[4]))
if type(held) == 'table' then
  return held
end
if held ~= ARGV[1] and held ~= ARGV[4] then
  return {0}
end
local fence, last = '0', nil
if KEYS[2] then
  fence, last = next_fence(KEYS[2])
  if not fence then
    return {-1, last}
  end
end
if held == ARGV[1] then
  return {2, last or fence}
end
if KEYS[2] then
  store_fence(KEYS[2], fence, last, ARGV[3])
end
local ttl = math.max(tonumber(ARGV[2]), redis.call('PTTL', KEYS[1]))
redis.call('SET', KEYS[1], ARGV[1], 'PX', string.format('%.0f', ttl))
return {1, fence}
