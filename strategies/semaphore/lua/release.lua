-- Releases a hold, and wakes the first waiter if permits are free. Needs lock, the queue.
-- KEYS[1]  the semaphore
-- KEYS[2]  the queue of waiters; without it nobody is woken
-- ARGV[1]  the hold's value
-- ARGV[2]  the channel to wake waiters on; empty: wake nobody
-- ARGV[3]  the ID of the place of the caller's process, to which no message is sent: the process
--          wakes its waiter itself; empty: none
-- ARGV[4]  always '1': the order is strict
-- ARGV[5]  'leave': no waiter of the caller's process is left
-- ARGV[6]  the limit; not used
-- ARGV[7]  '1' if it replaces another limit; not used
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
if till then
  lock.used = math.max(lock.used - (permits_of(ARGV[1]) or 0), 0)
  redis.call('ZREM', KEYS[1], ARGV[1]) -- first: it needs no memory
end
if not find_ended(lock, 1) then
  lock.dead = {}
end
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
if free(lock) > 0 then
  wake(KEYS[2], ARGV[2], ARGV[3])
end
return till and till > lock.now and 1 or 0
