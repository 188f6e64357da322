-- Releases a hold: compares, deletes, and wakes the first waiter. If the lock is free already, as
-- for a resend, it wakes the first waiter too. Needs read, reserved, the queue.
-- KEYS[1]  the lock
-- KEYS[2]  the queue of waiters; without it nobody is woken
-- ARGV[1]  our value
-- ARGV[2]  the channel to wake waiters on; empty: wake nobody
-- ARGV[3]  the ID of the place of the caller's process, to which no message is sent: the process
--          wakes its waiter itself; empty: none
-- ARGV[4]  '1' if the order is strict: the lock is reserved for the first waiter
-- ARGV[5]  'keep': the caller's process tries next, and no other process is woken, unless the order
--          is strict; 'leave': no waiter of the caller's process is left; empty: neither
--          ARGV[3] to ARGV[5] are absent if all are empty and there is no ARGV[6]
-- ARGV[6]  for how long the name stays taken, ms, at most until the lease would have ended; the
--          first waiter is woken, so that it learns the time. Absent: the lock is free
-- reply    1 released; 2 released, and nobody waits or the caller's process is first; 3 released, and
--          another waiter has been woken; 0 not ours
local own, fair, leaves = ARGV[3], ARGV[4] == '1', ARGV[5] == 'leave'
local held = read(KEYS[1], leaves and math.max(#ARGV[1], #reserved(own)) or #ARGV[1])
if type(held) == 'table' then
  return held
end
if leaves and KEYS[2] then
  -- The place goes even if the hold is not ours: a caller that only leaves the queue sends a value of
  -- no hold, and a release that is sent again finds the hold gone. Otherwise wake would choose this
  -- place below, send it nothing, and wake nobody else.
  remove_waiter(KEYS[2], own)
end
local ours = held == ARGV[1]
if ours and ARGV[6] then
  local left, keep = redis.call('PTTL', KEYS[1]), tonumber(ARGV[6])
  keep = digits(math.max(left < 0 and keep or math.min(left, keep), 1))
  redis.call('PEXPIRE', KEYS[1], keep) -- first: it needs no memory
  redis.call('SET', KEYS[1], kept(held), 'PX', keep)
  if KEYS[2] then
    wake(KEYS[2], ARGV[2], '')
  end
  return 1
end
if ours or leaves and held == reserved(own) then
  redis.call('DEL', KEYS[1])
elseif held ~= '' or redis.call('PTTL', KEYS[1]) ~= -2 then
  return 0
end
local others = 0
if KEYS[2] and (fair or ARGV[5] ~= 'keep') then
  local first
  first, others = wake(KEYS[2], ARGV[2], own)
  if first and fair then
    redis.call('SET', KEYS[1], reserved(first), 'PX', time_to_try)
  end
end
return ours and 1 + others or 0
