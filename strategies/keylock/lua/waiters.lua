-- add_waiters(reply, queue) adds the number of waiters to the reply of an Inspect script, and returns
-- it. If the reply says what else the key holds, or is an error, it stays as it is. The number is
-- that of those with a place of their own, else 1 if any waits; -1 if it is not known, as if queue
-- is nil. It needs the queue.
local function add_waiters(reply, queue)
  if reply.err or reply[1] < 0 then
    return reply
  end
  local waiters
  if queue then
    local now = math.floor(now_us() / 1000)
    local from, to = presence + 4 * (now + 1), presence + 4 * (now + retry_last + counts_for + 1) + 3 -- see parse_presence
    waiters = redis.pcall('ZCOUNT', queue, digits(from), digits(to))
    for group in pairs(groups) do -- the first attempt of any waiter leaves such a member too
      for delivery = 0, 2, 2 do
        local score = tonumber(redis.pcall('ZSCORE', queue, '~' .. group .. delivery) or nil)
        if type(waiters) == 'number' and waiters > 1 and score and score >= from and score <= to then
          waiters = waiters - 1
        end
      end
    end
  end
  reply[#reply + 1] = type(waiters) == 'number' and waiters or -1
  return reply
end
