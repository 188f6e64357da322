-- Reads who holds the lock. Needs most, read, current_fence, reserved.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter; nil: the token is not known
-- KEYS[3]  the queue of waiters; nil: their number is not known
-- ARGV[1]  'holds' to get the value once more, by which the hold can be ended
-- reply    {1, value, ms, 1, 0, fence}   what is stored, '' if it is too long to be ours; its PTTL;
--                                        1 hold, also if a release left the name taken (see kept);
--                                        0: exclusive; the last fencing token in decimal, '0' if
--                                        there is none; then the value again, if asked for
--          {0}                           free, or reserved for a waiter
local function inspect()
  local held = read(KEYS[1], most)
  if type(held) == 'table' then
    return held
  end
  local left = redis.call('PTTL', KEYS[1])
  if left == -2 or held == reserved(string.sub(held, 2, -2)) and #held == 24 then
    return {0}
  end
  held = #held > most and '' or held
  return {1, held, left, 1, 0, current_fence(KEYS[2]), ARGV[1] and held ~= '' and held or nil}
end
return add_waiters(inspect(), KEYS[3])
