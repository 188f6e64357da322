-- Adds the number of waiters to the reply of an Inspect script. Needs inspect(), which is that
-- script, and the queue.
-- KEYS[3]  the queue of waiters; without it their number is not known
-- reply    that of inspect; unless it says what else the key holds, the number of waiters is behind
--          it: that of those with a place of their own, else 1 if any waits; -1 if it is not known
local reply = inspect()
if reply.err or reply[1] < 0 then
  return reply
end
local waiters
if KEYS[3] then
  local now = math.floor(now_us() / 1000)
  local from, to = presence + 4 * (now + 1), presence + 4 * (now + retry_last + counts_for + 1) + 3 -- see read_presence
  waiters = redis.pcall('ZCOUNT', KEYS[3], digits(from), digits(to))
  for group in pairs(groups) do -- the first attempt of any waiter leaves such a member too
    for delivery = 0, 2, 2 do
      local score = tonumber(redis.pcall('ZSCORE', KEYS[3], '~' .. group .. delivery) or nil)
      if type(waiters) == 'number' and waiters > 1 and score and score >= from and score <= to then
        waiters = waiters - 1
      end
    end
  end
end
reply[#reply + 1] = type(waiters) == 'number' and waiters or -1
return reply
