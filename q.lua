-- The queue of waiters of a lock: a sorted set in its slot. For each waiter, which is named by an
-- ID, it has two members:
--   ID    the score is since when it waits, us; once it was woken: minus the time of that
--   ~ID   the score is presence + 4 * (until when the waiter counts, ms) + its delivery: 0 by
--         PUBLISH, 1 by PUBLISH and the number of receivers is right, 2 by SPUBLISH
-- Waiters that are woken all together have ~all0 or ~all2 instead, by their delivery.
--
-- A waiter counts for a while after its last attempt. Once woken, it has a moment to try. Where it
-- listens on a server that knows nobody who listens, it is gone. A queue that the user may not use,
-- or that is no sorted set, is empty.

local presence = 4e15
local retry_first = 2000 -- ms after which the first waiter tries again at the latest
local retry_spread = 5 -- waiters ahead for each ms more, so that long queues poll hardly more often
local retry_last = 60000 -- ms after which any waiter tries again at the latest
local counts_for = 3000 -- ms that a waiter counts after its next attempt is due
local time_to_try = 500 -- ms that a waiter that was woken has to try
local most_dropped = 100 -- waiters that a call drops at most; the next one counts

local function digits(number)
  return string.format('%.0f', number)
end

local function now_us()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- deliver(channel, delivery) publishes a message, and reports whether somebody may have heard it.
local function deliver(channel, delivery)
  local heard = redis.pcall(delivery == 2 and 'SPUBLISH' or 'PUBLISH', channel, '')
  return delivery == 0 or heard ~= 0
end

-- read_presence(queue, member, now) returns the delivery of a waiter; nil if it does not count any
-- more, or the clock was set back since.
local function read_presence(queue, member, now)
  local score = tonumber(redis.call('ZSCORE', queue, member) or nil)
  local left = score and math.floor((score - presence) / 4) - now / 1000
  if left and left > 0 and left <= retry_last + counts_for + 1 then
    return (score - presence) % 4
  end
end

local function remove_waiter(queue, id)
  redis.pcall('ZREM', queue, id, '~' .. id)
end

-- first_waiter(queue, now, trying) returns the ID of the waiter that has waited longest, its score
-- and its delivery; nil if there is none. It drops those that do not count, but not the one that is
-- trying, up to a number: the next one counts, so that nobody passes those behind it.
local function first_waiter(queue, now, trying)
  for looked = 0, most_dropped do
    local first = redis.pcall('ZRANGE', queue, 0, 0, 'WITHSCORES')
    local id, score = first[1], tonumber(first[2] or nil)
    if not id or score >= presence then
      return nil
    end
    if id == trying then
      return id
    end
    local delivery = read_presence(queue, '~' .. id, now)
    local since_woken = now + score
    local counts = delivery and (score > 0 or since_woken >= 0 and since_woken <= time_to_try * 1000)
    if counts or looked == most_dropped then
      return id, score, delivery or 0
    end
    remove_waiter(queue, id)
  end
end

-- wake_first(queue, channel, own) wakes the first waiter, unless it is own, which its process
-- wakes. It returns the ID of the one that was woken, now or a moment ago; nil if there is none.
local function wake_first(queue, channel, own)
  local now = now_us()
  for looked = 0, most_dropped do
    local id, score, delivery = first_waiter(queue, now)
    if not id or score < 0 then
      return id
    end
    if id == own or deliver(channel .. ':' .. id, delivery) or looked == most_dropped then
      redis.call('ZADD', queue, digits(-now), id)
      return id
    end
    remove_waiter(queue, id)
  end
end

-- wake_all(queue, channel) wakes the waiters that are woken together.
local function wake_all(queue, channel)
  for delivery = 0, 2, 2 do
    local member = '~all' .. delivery
    if redis.call('ZREM', queue, member) == 1 then
      deliver(channel, delivery)
    end
  end
end

-- has_waiters(queue) reports whether there is a queue.
local function has_waiters(queue)
  return queue and redis.pcall('ZRANGE', queue, 0, 0)[1] ~= nil
end

-- wake(queue, channel, own) wakes who is to try next, now that the lock is free. It returns what
-- wake_first does.
local function wake(queue, channel, own)
  if channel == '' or not has_waiters(queue) then
    return nil
  end
  wake_all(queue, channel)
  return wake_first(queue, channel, own)
end

-- enqueue(queue, id, delivery, waited, patience, left) puts a waiter that was refused into the
-- queue: it has waited for so long, and waits for at most patience ('' without end). left is what is
-- left of the holder's lease, ms, negative if unknown. It returns the time after which the waiter
-- tries again, ms: left for one without a place of its own; negative for one that cannot have its
-- place, so that nobody wakes it.
local function enqueue(queue, id, delivery, waited, patience, left)
  local all, ahead = id == 'all', 0
  local unplaced = (all or id == '') and left or -1
  if not queue or id == '' then
    return unplaced
  end
  local now = now_us()
  if not all then
    local added = redis.pcall('ZADD', queue, digits(now - math.max(tonumber(waited), 0) * 1000), id)
    if type(added) ~= 'number' then
      return unplaced
    end
    ahead = redis.pcall('ZRANK', queue, id)
    if type(ahead) ~= 'number' then
      remove_waiter(queue, id)
      return unplaced
    end
  end
  local again = math.min(retry_last, retry_first + math.floor(ahead / retry_spread))
  local kept = math.min(again + counts_for, math.ceil(tonumber(patience) or math.huge))
  local till = digits(presence + 4 * (math.floor(now / 1000) + kept) + delivery)
  local added = redis.pcall('ZADD', queue, till, '~' .. (all and (delivery == '2' and 'all2' or 'all0') or id))
  if type(added) ~= 'number' then
    return unplaced
  end
  if redis.call('PTTL', queue) < kept and redis.pcall('PEXPIRE', queue, kept) ~= 1 then
    redis.pcall('DEL', queue) -- the user may not set an expiry: no queue stays without one
    return unplaced
  end
  if all then
    return left
  end
  return math.min(again, left < 0 and again or left + ahead)
end

-- kept_for(queue, channel, id, fair) returns the ID of the waiter that a free lock is kept for; nil
-- if id may have it: no other one was woken a moment ago. With fair, no other one may be ahead at
-- all, and the first one is woken.
local function kept_for(queue, channel, id, fair)
  if not has_waiters(queue) then
    return nil
  end
  local first, score = first_waiter(queue, now_us(), id)
  if first and first ~= id and fair then
    first, score = wake_first(queue, channel, id), -1 -- it drops those that do not listen
  end
  if first and first ~= id and score < 0 then
    return first
  end
end

return enqueue(KEYS[1],'x','0','0','',20000)
