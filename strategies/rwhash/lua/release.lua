-- Releases a hold. With the last live one the lock is free, and those that are next are woken. Needs
-- holds, lock, the queue, turns.
-- KEYS[1]  the lock
-- KEYS[2]  the queue of waiters; without it nobody is woken
-- ARGV[1]  the hold's token
-- ARGV[2]  the channel to wake waiters on; empty: wake nobody
-- ARGV[3]  the ID of the place of the caller's process, to which no message is sent: the process
--          wakes its waiter itself; empty: none
-- ARGV[4]  '1': the order is strict; not used
-- ARGV[5]  'leave': the waiters of the caller's process have given up: all of them, or with an empty
--          ARGV[3] its readers; else not used
--          ARGV[3] to ARGV[5] are absent if all are empty and there is no ARGV[6]
-- ARGV[6]  for how long the name stays taken, ms, at most until the lease would have ended; the
--          waiters are woken, so that they learn the time. Absent: the lock is free
-- reply    1 released; 2 the lock is free, and nobody waits or the caller's process is first; 3 it is
--          free, and another waiter has been woken; 0 not held: the hold is gone or has expired
local lock, other = open(KEYS[1], ARGV[1])
if other then
  return other.err and other or 0
end
local queue, channel, leaves = KEYS[2], ARGV[2], ARGV[5] == 'leave'
if leaves and queue then
  remove_waiter(queue, ARGV[3])
end
local waiting = channel ~= '' and has_waiters(queue)

-- wake_next(readers) wakes the waiters that are next: the writers, and with readers these too, or
-- if no writer waits. It returns what the reply says of waiters.
local function wake_next(readers)
  if not waiting then
    return channel == '' and 0 or 1
  end
  local delivery = quorum_waits(queue, now_us())
  local others = delivery and deliver(channel, delivery) -- they stay: the lock is kept for them
  local group = wake_all(queue, channel, 'newcomers')
  local first = wake_first(queue, channel, ARGV[3])
  if readers or not first and not others then
    group = wake_all(queue, channel) or group
  end
  return (others or group or first and first ~= ARGV[3]) and 2 or 1
end

local till = lock and parse_end(lock.own)
if not till then
  local held = lock and last_end(lock) -- maybe by a hold that has expired
  if leaves and ARGV[3] == '' and in_turn(lock) and lock.bar ~= lock.turn then
    redis.call('HDEL', KEYS[1], 'turn') -- maybe no reader that was woken is left
    if not held then
      redis.call('DEL', KEYS[1])
    end
  end
  if not held then
    wake_next()
  elseif leaves and waiting and not lock.writer and not first_waiter(queue, now_us()) then
    wake_all(queue, channel) -- the readers that a writer kept out
  end
  return 0
end
local wrote, found = lock.writer == ARGV[1] or lock.gone == ARGV[1], {}
local keeps = ARGV[6] and till > lock.now and not broken
if keeps then
  allow_writes(lock)
  local kept, rest = kept_token(ARGV[1]), string.match(lock.own, '^%d+(.*)$')
  write_hold(lock, kept, math.min(till, lock.now + tonumber(ARGV[6])), rest)
  if wrote then
    redis.call('HSET', KEYS[1], 'writer', kept)
  end
end
if keeps or not wrote and not (lock.last == ARGV[1] and redis.call('HLEN', KEYS[1]) == 3) then -- not the only hold
  found = find_holder(lock, false, ARGV[1])
  if found.token or broken then
    redis.call('HDEL', KEYS[1], ARGV[1])
    if not broken then
      store_found(lock, found)
    end
    if keeps then
      wake_next(true)
    end
    return till > lock.now and 1 or 0
  end
end

local readers = wrote and waiting and wake_readers(queue, channel)
local bar, turn = lock.bar, lock.turn
if readers then
  turn = lock.now + time_to_try
  bar = lock.long and turn or 0
end
if waiting and math.max(bar, turn) > lock.now then
  write_lock(lock, KEYS[1], {'kind', 'rwhash', 'bar', format_ms(bar), 'turn', format_ms(turn)}, math.max(bar, turn))
else
  redis.call('DEL', KEYS[1])
end
local others = wake_next()
return till > lock.now and 1 + (readers and 2 or others) or 0
