-- Acquires, or finds that an earlier send of the same acquire did. Needs most, find_holder, shown,
-- is_held, next_fence.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- ARGV[1]  our field
-- ARGV[2]  TTL of the lock, ms
-- ARGV[3]  '0' if the hold is not fenced; otherwise not used: the counter has no TTL
-- reply    {1, fence}       acquired by this call
--          {2, fence}       acquired by an earlier send of this call
--          {0, field, ms}   held: the holder's field, '' if it is too long to be ours; the PTTL
--          {-1, text}       the counter holds something else: text
--          {-2, text}       the key holds something else: text
--          fence is a decimal string, '0' if the hold is not fenced
local counter = ARGV[3] ~= '0' and KEYS[2] or nil
local held, wrong = is_held(KEYS[1], ARGV[1])
if wrong then
  return wrong
end
if not held then
  local field, other = find_holder(KEYS[1])
  if field then
    return {0, shown(field), redis.call('PTTL', KEYS[1])}
  end
  if other then
    return other
  end
end
local fence, last = '0', nil
if counter then
  fence, last = next_fence(counter)
  if not fence then
    return {-1, last}
  end
end
if held and (last or not counter) then
  return {2, last or '0'}
end
if counter then
  redis.call('SET', counter, fence)
end
if held then
  return {2, fence}
end
redis.call('HSET', KEYS[1], ARGV[1], '1')
local kept = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
if kept ~= 1 then -- the user may not set an expiry: no lock stays without one
  redis.call('HDEL', KEYS[1], ARGV[1])
  return kept
end
return {1, fence}
