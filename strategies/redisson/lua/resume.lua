-- Takes a hold over: replaces its field by a new one. It never shortens the lease. Needs is_held,
-- next_fence.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- ARGV[1]  our new field
-- ARGV[2]  TTL of the lock, ms
-- ARGV[3]  not used: the counter has no TTL
-- ARGV[4]  the field to replace
-- reply    {1, fence}   taken over by this call
--          {2, fence}   taken over by an earlier send of this call
--          {0}          the hold is gone
--          {-1, text}   the counter holds something else: text
local held, wrong = is_held(KEYS[1], ARGV[1])
if wrong then
  return wrong
end
if not held and not is_held(KEYS[1], ARGV[4]) then
  return {0}
end
local fence, last = '0', nil
if KEYS[2] then
  fence, last = next_fence(KEYS[2])
  if not fence then
    return {-1, last}
  end
end
if held then
  return {2, last or fence}
end
if KEYS[2] then
  redis.call('SET', KEYS[2], fence)
end
redis.call('HSET', KEYS[1], ARGV[1], '1')
redis.call('HDEL', KEYS[1], ARGV[4]) -- second: with its only field the key would lose its lease
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2]))))
return {1, fence}
