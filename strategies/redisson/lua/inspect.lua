-- Reads who holds the lock. Needs most, find_holder, shown, current_fence.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter; nil: the token is not known
-- ARGV[1]  'holds' to get the field once more, by which the hold can be ended
-- reply    {1, field, ms, count, 0, fence}   the holder's field, '' if it is too long to be ours; the
--                                            PTTL; how often the holder has acquired the lock; 0:
--                                            exclusive; the last fencing token in decimal, '0' if
--                                            there is none; then the field again, if asked for
--          {0}                               free
--          {-2, text}                        the key holds something else: text
local field, count = find_holder(KEYS[1])
if not field then
  return count or {0}
end
return {1, shown(field), redis.call('PTTL', KEYS[1]), count, 0, current_fence(KEYS[2]), ARGV[1] and field or nil}
