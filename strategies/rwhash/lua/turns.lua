-- The order of readers and writers. Needs holds, lock, the queue.
--
-- Readers wait in the group 'all', and are woken together. A writer has a place of its own; one of a
-- quorum is in the group 'writers'. One that has not been refused before is in 'newcomers', for its
-- wake-up alone.
--
-- A writer that waits keeps new readers out for a period, beginning at bar; then they enter for as
-- long, and so on. When a writer ends, it is the turn of the readers that wait, until turn. The first
-- one to enter ends it, and bar is a moment later, for the others. In a long turn bar is equal to turn,
-- which stays.

local herd = 10 -- ms after the first reader of a turn for which others enter too
local writers_count_for = 1000 -- ms for which writers of a quorum count after an attempt

-- in_turn(lock) reports whether it is the readers' turn.
local function in_turn(lock)
  return lock and lock.turn > lock.now
end

-- quorum_waits(queue, now) reports whether a writer of a quorum waits.
local function quorum_waits(queue, now)
  return read_presence(queue, '~writers0', now) or read_presence(queue, '~writers2', now)
end

-- time_barred(lock, queue, bound) returns for how long a waiting writer keeps new readers out, ms; nil
-- if they may enter beside those that hold.
local function time_barred(lock, queue, bound)
  local now = now_us()
  if not first_waiter(queue, now) and not quorum_waits(queue, now) then
    return nil
  end
  if lock.bar + 2 * bound <= lock.now then
    lock.bar = lock.now
    redis.call('HSET', lock.key, 'bar', format_ms(lock.bar))
  end
  if lock.now < lock.bar + bound then
    return lock.bar + bound - lock.now
  end
end

-- wake_readers(queue, channel) wakes the readers that wait, and returns whether there may be any.
local function wake_readers(queue, channel)
  local _, received = wake_all(queue, channel)
  return received
end

-- time_kept(queue, channel, place, shared, waited) returns for how long a lock that nobody holds is kept
-- for others than the caller, ms, or nil. A writer that was woken goes first. Else the last holder may
-- have expired: then the readers go first, and true is returned too, or else the first writer, which is
-- woken.
local function time_kept(queue, channel, place, shared, waited)
  local rest = kept_for(queue, channel, place, false, waited)
  local score = not rest and has_place(place) and tonumber(redis.call('ZSCORE', queue, place) or nil)
  if rest or score and score < 0 then
    return rest
  end
  if quorum_waits(queue, now_us()) then
    return shared and time_to_try or nil
  end
  if wake_readers(queue, channel) then
    return not shared and time_to_try or nil, true
  end
  return kept_for(queue, channel, place, true, waited)
end
