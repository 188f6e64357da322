-- Releases a hold. With the last live one the lock is free, and the first waiter is woken. Needs
-- holds, open, the queue.
-- KEYS[1]  the lock
-- KEYS[2]  the queue of waiters; without it nobody is woken
-- ARGV[1]  the hold's token, or the name of what keeps the name taken (see kept_name)
-- ARGV[2]  the channel to wake waiters on; empty: wake nobody
-- ARGV[3]  the ID of the place of the caller's process, to which no message is sent: the process
--          wakes its waiter itself; empty: none
-- ARGV[4]  '1' if the order is strict
-- ARGV[5]  'keep': the caller's process tries next, and no other process is woken, unless the order
--          is strict; 'leave': no waiter of the caller's process is left; empty: neither
--          ARGV[3] to ARGV[5] are absent if all are empty and there is no ARGV[6]
-- ARGV[6]  for how long the name stays taken, ms, at most until the lease would have ended; the
--          first waiter is woken, so that it learns the time. Absent: the lock is free
-- reply    1 released; 2 the lock is free, and nobody waits or the caller's process is first; 3 it is
--          free, and another waiter has been woken; 0 not held: the hold is gone or has expired
local lock, other = open(KEYS[1])
if other then
  return other.err and other or 0
end

if KEYS[2] and ARGV[5] == 'leave' then
  remove_waiter(KEYS[2], ARGV[3])
end

-- wake_next() wakes the first waiter, and returns what the reply says of others that wait.
local function wake_next()
  if not KEYS[2] or ARGV[4] ~= '1' and ARGV[5] == 'keep' then
    return 0
  end
  local _, others = wake(KEYS[2], ARGV[2], ARGV[3])
  return others
end

local till = lock and hold_end(lock, ARGV[1])
if lock and not broken and ARGV[1] == kept_name(lock) then
  till, lock.keep, lock.needed = lock.keep, 0, 0
  redis.call('HDEL', KEYS[1], 'keep')
end
if not lock then
  wake_next()
end
if not till then
  return 0
end
local found = find_holder(lock, false, ARGV[1])
redis.call('HDEL', KEYS[1], ARGV[1])
if broken then
  return till > lock.now and 1 or 0
end
if ARGV[6] then
  lock.keep = math.max(lock.keep, math.min(lock.now + tonumber(ARGV[6]), till))
  lock.needed = lock.keep
  redis.call('HSET', KEYS[1], 'keep', format_ms(lock.keep))
end
local others = 0
if found.token then
  store_found(lock, found)
elseif lock.keep > lock.now then
  set_expiry(lock, lock.keep)
  wake_next()
else
  redis.call('DEL', KEYS[1])
  others = wake_next()
end
return till > lock.now and 1 + others or 0
