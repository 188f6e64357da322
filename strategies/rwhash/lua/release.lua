-- Releases a hold. With the last live one the lock is free, and the readers and the first writer
-- are woken. The intents of those who go on waiting stay, if they matter to others. Needs holds,
-- lock, turns, the queue.
-- KEYS[1]  the lock
-- KEYS[2]  the queue of waiters; without it nobody is woken
-- ARGV[1]  the hold's token
-- ARGV[2]  the channel to wake waiters on; empty: wake nobody
-- ARGV[3]  the ID of the place of the caller's process; not used
-- ARGV[4]  '1' if the order is strict; not used
-- ARGV[5]  whether the caller's process tries next; not used
-- ARGV[6]  how long the readers have their turn after a writer, ms
-- ARGV[7]  for how long the name stays taken, ms, at most until the lease would have ended; the
--          waiters are woken, so that they learn the time. Absent: the lock is free
-- reply    1 released; 2 the lock is free, and nobody waits; 0 not held: the hold is gone or has
--          expired
local lock, other = open(KEYS[1], ARGV[1])
if other then
  return other.err and other or 0
end

local till = lock and parse_end(lock.own)
if not lock then
  wake(KEYS[2], ARGV[2])
end
if not till then
  return 0
end
local wrote, found = lock.writer == ARGV[1] or lock.gone == ARGV[1], {}
local keeps = ARGV[7] and till > lock.now and not broken
if keeps then
  allow_writes(lock)
  local kept, rest = kept_token(ARGV[1]), string.match(lock.own, '^%d+(.*)$')
  write_hold(lock, kept, math.min(till, lock.now + tonumber(ARGV[7])), rest)
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
      wake(KEYS[2], ARGV[2])
    end
    return till > lock.now and 1 or 0
  end
end
if lock.needed > lock.now then
  if wrote then
    start_readers_turn(lock, math.min(till, lock.now), tonumber(ARGV[6]))
  end
  if lock.wwant > lock.now or lock.hwant > lock.now or readers_turn(lock) then
    redis.call('HDEL', KEYS[1], 'last', 'rough', ARGV[1])
    remove_dead(lock, found.dead)
    set_expiry(lock, lock.now)
  else
    redis.call('DEL', KEYS[1])
  end
else
  redis.call('DEL', KEYS[1])
end
local first = wake(KEYS[2], ARGV[2])
if first and lock.heir ~= first and lock.hwant > lock.now then
  -- The next writer has gone, or began to wait in the same instant.
  redis.call('HSET', KEYS[1], 'heir', first, 'howner', '', 'hnote', '')
end
return till > lock.now and 1 or 0
