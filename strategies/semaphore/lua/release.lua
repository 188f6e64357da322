-- Releases a hold, and wakes the first waiter if permits are free. Needs lock, the queue.
-- KEYS[1]  the semaphore
-- KEYS[2]  the queue of waiters; without it nobody is woken
-- ARGV[1]  the hold's value; for locker.Break also that of a kept hold, which is removed
-- ARGV[2]  the channel to wake waiters on; empty: wake nobody
-- ARGV[3]  the ID of the place of the caller's process, to which no message is sent: the process
--          wakes its waiter itself; empty: none
-- ARGV[4]  always '1': the order is strict
-- ARGV[5]  'leave': no waiter of the caller's process is left
-- ARGV[6]  for how long the permits stay taken, ms, at most until the lease would have ended; the
--          first waiter is woken, so that it learns the time. Absent: they are free
-- reply    1 released, 0 not held: the hold was removed or has expired
if KEYS[2] and ARGV[5] == 'leave' then
  remove_waiter(KEYS[2], ARGV[3])
end
local lock, other = open(KEYS[1])
if other then
  return other.err and other or 0
end
if not lock then
  wake(KEYS[2], ARGV[2], ARGV[3])
  return 0
end
local till = end_of(lock, ARGV[1])
local keeps = ARGV[6] and till and till > lock.now
if till then
  redis.call('ZREM', KEYS[1], ARGV[1]) -- first: it needs no memory
end
if keeps then
  redis.call('ZADD', KEYS[1], whole(math.min(till, lock.now + tonumber(ARGV[6]))), '~' .. ARGV[1])
  lock.kept = 1
elseif till then
  lock.used = math.max(lock.used - (permits_of(ARGV[1]) or 0), 0)
  if string.sub(ARGV[1], 1, 1) == '~' then
    lock.kept = -1
  end
end
find_ended(lock, 1)
if till or #lock.dead > 0 then
  store(lock)
  local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
  if tonumber(last[2]) < 0 then
    redis.call('DEL', KEYS[1])
    lock.used = 0
  elseif till and tonumber(last[2]) < till then
    redis.call('PEXPIREAT', KEYS[1], last[2])
  end
end
if keeps then
  wake(KEYS[2], ARGV[2], '')
elseif free(lock) > 0 then
  wake(KEYS[2], ARGV[2], ARGV[3])
end
return till and till > lock.now and 1 or 0
