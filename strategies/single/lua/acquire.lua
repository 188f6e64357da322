-- Acquires, or finds that an earlier send of the same acquire did. Needs read, most, next_fence.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- ARGV[1]  our value
-- ARGV[2]  TTL of the lock, ms
-- ARGV[3]  TTL of the counter, ms
-- reply    {1, fence}        acquired by this call
--          {2, fence}        acquired by an earlier send of this call
--          {0, value, ms}    held: what is stored, '' if it is too long to be ours, and its PTTL
--          {-1, text}        the counter holds something else: text
--          fence is a decimal string, '0' if the hold is not fenced
local found = read(KEYS[1], most)
if type(found) == 'table' then
  return found
end
local held = found == ARGV[1]
local left = held or redis.call('PTTL', KEYS[1])
if not held and left ~= -2 then
  return {0, #found > most and '' or found, left}
end
local fence, last = '0', nil
if KEYS[2] then
  fence, last = next_fence(KEYS[2])
  if not fence then
    return {-1, last}
  end
end
if held and (last or not KEYS[2]) then
  return {2, last or '0'}
end
if KEYS[2] then
  redis.call('SET', KEYS[2], fence, 'PX', ARGV[3])
end
if held then
  return {2, fence}
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, fence}
