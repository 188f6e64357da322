-- The queue of waiters of a lock: a sorted set in the lock's slot. A waiter is named by an ID and
-- has two members:
--   ID    score: the time at which it began to wait, us; once it is woken, minus the time of the
--         wake-up
--   ~ID   score: presence + 4 * (the time until which the waiter counts, ms) + its delivery: 0 by
--         PUBLISH, 1 by PUBLISH with an exact number of receivers, 2 by SPUBLISH
--   !ID   a mark, in place of the two: the waiter missed a wake-up. Score: marks + the time until
--         which it is marked, ms
-- Waiters that are woken all together share a member, by the name of their group and their delivery:
-- ~all0 or ~all2. In rwhash these are the readers. The writers of quorums and those that have not
-- waited yet are two more groups: writers and newcomers.
--
-- A waiter counts until counts_for after its next attempt is due. Once woken, it has time_to_try
-- for an attempt. If it lets that time pass, its messages may be lost: it is marked. A marked waiter
-- has no place, is not woken, and polls. It takes a free lock even if that is kept for another, once
-- it has waited for pass_after. A waiter is dropped if its delivery counts the receivers and its
-- wake-up reaches none.
-- A queue that the user may not access, or whose key holds another type, is treated as empty.

local presence = 4e15
local marks = 5e15
local marked_for = 30000 -- ms for which a waiter that missed a wake-up is marked
local retry_marked = 100 -- ms after which a marked waiter tries again, and up to as much later at random
local pass_after = 1000 -- ms after which a marked waiter takes a lock that is kept for another
local retry_first = 2000 -- ms after which the first waiter tries again at the latest
local retry_spread = 5 -- the number of waiters ahead that adds 1 ms, so that a long queue sends few polls
local retry_last = 60000 -- ms after which any waiter tries again at the latest
local counts_for = 3000 -- ms for which a waiter counts after its next attempt is due
local time_to_try = 500 -- ms that a woken waiter has for its attempt
local most_dropped = 1000 -- waiters that one script drops, in about 5 ms; the next one counts
local dropped = 0
local groups = {[''] = true, all = true, writers = true, newcomers = true}

local function digits(number)
  return string.format('%.0f', number)
end

local function now_us()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- deliver(channel, delivery) publishes a message. It returns false if the delivery counts the
-- receivers and there are none.
local function deliver(channel, delivery)
  local heard = redis.pcall(delivery == 2 and 'SPUBLISH' or 'PUBLISH', channel, '')
  return delivery == 0 or heard ~= 0
end

-- parse_presence(score, now) returns the delivery of a waiter, and the time until which it counts,
-- ms. It returns nil if the waiter no longer counts, the clock was set back since its last attempt,
-- or score is nil.
local function parse_presence(score, now)
  local till = score and math.floor((score - presence) / 4)
  if till and till > now / 1000 and till <= now / 1000 + retry_last + counts_for + 1 then
    return (score - presence) % 4, till
  end
end

-- read_presence(queue, member, now) is parse_presence for a member of the queue.
local function read_presence(queue, member, now)
  return parse_presence(tonumber(redis.call('ZSCORE', queue, member) or nil), now)
end

-- need_memory(queue) raises the error of a server whose memory is full, and changes nothing. Without
-- it the first command that frees memory would allow the script any write after it. In Redis 6.2 the
-- text of the error begins with the line of the script.
local function need_memory(queue)
  local refused = redis.pcall('ZADD', queue, 'XX', 0, '~')
  if type(refused) == 'table' and string.find(refused.err, 'OOM command', 1, true) then
    redis.call('ZADD', queue, 'XX', 0, '~')
  end
end

local function remove_waiter(queue, id)
  redis.pcall('ZREM', queue, id, '~' .. id)
end

-- missed_wake(score, now) reports whether a waiter with that score has let its time to try pass.
local function missed_wake(score, now)
  return score < 0 and now + score > time_to_try * 1000
end

-- mark(queue, id, now) marks a waiter, and removes up to two marks that have ended.
local function mark(queue, id, now)
  local till = marks + math.floor(now / 1000)
  local others = redis.pcall('ZCOUNT', queue, '-inf', digits(marks))
  for _ = 1, type(others) == 'number' and 2 or 0 do
    local oldest = redis.pcall('ZRANGE', queue, others, others, 'WITHSCORES')
    if oldest[1] and tonumber(oldest[2]) <= till then
      redis.pcall('ZREM', queue, oldest[1])
    end
  end
  redis.pcall('ZADD', queue, digits(till + marked_for), '!' .. id)
  remove_waiter(queue, id)
end

-- is_marked(queue, id, now) reports whether a waiter is marked. It marks one whose attempt comes
-- too late. A mark that ends later than marked_for from now is from before the clock was set back.
local function is_marked(queue, id, now)
  local score = tonumber(redis.pcall('ZSCORE', queue, id) or nil)
  if score and missed_wake(score, now) then
    mark(queue, id, now)
    return true
  end
  local till = not score and tonumber(redis.pcall('ZSCORE', queue, '!' .. id) or nil)
  return till and till > marks + now / 1000 and till <= marks + now / 1000 + marked_for
end

-- first_waiter(queue, now, trying) returns the ID of the first waiter, its score and its delivery,
-- or nil if there is none. A woken waiter comes before all others, then the one that has waited
-- longest. It drops waiters that do not count, but never the one whose attempt this is (trying, for
-- which it returns the ID alone). Behind most_dropped the next one counts in any case, so that nobody
-- passes those behind it.
local function first_waiter(queue, now, trying)
  while true do
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
    if counts or dropped == most_dropped then
      return id, score, delivery or 0
    end
    dropped = dropped + 1
    if delivery and missed_wake(score, now) then
      mark(queue, id, now)
    else
      remove_waiter(queue, id)
    end
  end
end

-- wake_first(queue, channel, own) wakes the first waiter, unless one was woken already and still
-- has time to try. It publishes nothing for own, which its process wakes. It returns the ID of the
-- woken waiter and when it was woken, as its score, or nil if the queue is empty.
local function wake_first(queue, channel, own)
  redis.pcall('ZREM', queue, '') -- no member: after it a server out of memory allows other writes
  local now = now_us()
  while true do
    local id, score, delivery = first_waiter(queue, now)
    if not id or score < 0 then
      return id, score
    end
    if id == own or deliver(channel .. ':' .. id, delivery) or dropped == most_dropped then
      redis.call('ZADD', queue, digits(-now), id)
      return id, -now
    end
    dropped = dropped + 1
    remove_waiter(queue, id)
  end
end

-- wake_all(queue, channel, group) wakes the waiters of a group, 'all' by default, once, and removes
-- their member. It returns whether there were any, and whether one that counts may have received it.
local function wake_all(queue, channel, group)
  local found, received = false, false
  for delivery = 0, 2, 2 do
    local member = '~' .. (group or 'all') .. delivery
    local score = tonumber(redis.call('ZSCORE', queue, member) or nil)
    if score then
      local counts = read_presence(queue, member, now_us())
      redis.call('ZREM', queue, member)
      found, received = true, deliver(channel, (score - presence) % 4) and counts or received
    end
  end
  return found, received
end

-- has_waiters(queue) reports whether the queue can be read and is not empty.
local function has_waiters(queue)
  return queue and redis.pcall('ZRANGE', queue, 0, 0)[1] ~= nil
end

-- wake(queue, channel, own) wakes the waiters that are to try next, now that the lock is free. It
-- returns the result of wake_first, and what a release adds to its reply: 1 if nobody waits or own
-- is first, 2 if another waiter has been woken. With an empty channel it wakes nobody, and returns
-- nil, 0.
local function wake(queue, channel, own)
  if channel == '' then
    return nil, 0
  end
  if not has_waiters(queue) then
    return nil, 1
  end
  local all = wake_all(queue, channel)
  local first = wake_first(queue, channel, own)
  return first, (all or first and first ~= own) and 2 or 1
end

-- has_place(id) reports whether id is that of a waiter with a place of its own: neither a group nor
-- empty.
local function has_place(id)
  return not groups[id]
end

-- passes(queue, id, now, waited) reports whether a waiter may take a free lock that is kept for
-- another: it is marked.
local function passes(queue, id, now, waited)
  return has_place(id) and is_marked(queue, id, now) and tonumber(waited) >= pass_after
end

-- enqueue(queue, id, delivery, waited, patience, left) puts a refused waiter into the queue, or
-- extends its presence there. It never shortens it: an attempt of another waiter of the process may
-- come late. The waiter has waited for waited ms and waits for at most patience ms longer ('': no
-- bound). left is what is left of the holder's lease, ms, negative if unknown. It returns the time
-- after which the waiter tries again, ms: left, or less, for one that has no place of its own, -1 for
-- one whose place cannot be stored, so that nobody wakes it.
local function enqueue(queue, id, delivery, waited, patience, left)
  local all, ahead = not has_place(id), 0
  local unplaced = all and left or -1
  if not queue or id == '' then
    return unplaced
  end
  local now = now_us()
  if not all and is_marked(queue, id, now) then
    local again = retry_marked + now % retry_marked
    return left < 0 and again or math.min(left, again)
  end
  local member = '~' .. id .. (all and (delivery == '2' and 2 or 0) or '')
  local before = redis.pcall('ZSCORE', queue, member)
  if type(before) == 'table' then
    return unplaced
  end
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
  local _, other = parse_presence(tonumber(before or nil), now) -- another waiter here may wait longer
  local till = math.max(math.floor(now / 1000) + kept, other or 0)
  local added = redis.pcall('ZADD', queue, digits(presence + 4 * till + delivery), member)
  if type(added) ~= 'number' then
    return unplaced
  end
  local ttl = redis.pcall('PTTL', queue)
  if type(ttl) ~= 'number' or ttl < kept and redis.pcall('PEXPIRE', queue, kept) ~= 1 then
    redis.pcall('DEL', queue) -- the user may not read or set an expiry: no queue stays without one
    return unplaced
  end
  if all then
    return id == 'all' and math.min(left, again) or left
  end
  return math.min(again, left < 0 and again or left + ahead)
end

-- leave_place(queue, id, delivery, next) is called for a waiter that acquires the lock. It removes
-- the waiter's place, or passes it on to the next waiter of the process, which has waited for next
-- ms. next is '' if the order is not strict, and negative if there is no such waiter.
local function leave_place(queue, id, delivery, next)
  need_memory(queue)
  if next == '' or tonumber(next) < 0 then
    remove_waiter(queue, id)
  else
    enqueue(queue, id, delivery, next, '', -1)
  end
end

-- kept_for(queue, channel, id, fair, waited) returns for how long a free lock is kept for another
-- waiter, ms, or nil if id, which has waited for waited ms, may have it. It is kept for a waiter that
-- was woken and still has time to try. With fair it is kept for the first waiter, if that is not id,
-- and that waiter is woken.
local function kept_for(queue, channel, id, fair, waited)
  if not has_waiters(queue) then
    return nil
  end
  need_memory(queue)
  local now = now_us()
  if passes(queue, id, now, waited) then
    return nil
  end
  local first, score = first_waiter(queue, now, id)
  if first and first ~= id and fair then
    first, score = wake_first(queue, channel, id) -- which drops waiters whose message nobody receives
  end
  if first and first ~= id and score < 0 then
    return math.max(math.ceil(time_to_try - (now + score) / 1000), 1)
  end
end
