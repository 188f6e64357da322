-- Adds the number of waiters to the reply of an Inspect script. Needs inspect(), which is that
-- script, and the queue.
-- KEYS[3]  the queue of waiters; without it their number is not known
-- reply    that of inspect; unless it says what else the key holds, the number of waiters is behind
--          it, -1 if it is not known
local reply = inspect()
if reply.err or reply[1] < 0 then
  return reply
end
local waiters
if KEYS[3] then
  local now = math.floor(now_us() / 1000)
  local first, last = now + 1, now + retry_last + counts_for + 1 -- when their presence ends, see read_presence
  waiters = redis.pcall('ZCOUNT', KEYS[3], digits(presence + 4 * first), digits(presence + 4 * last + 3))
end
reply[#reply + 1] = type(waiters) == 'number' and waiters or -1
return reply
