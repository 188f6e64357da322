-- Releases a hold. With the last live one the lock is free, and that is published; a PUBLISH that
-- is refused changes nothing. The intents of those who go on waiting stay, if they matter to
-- others. Needs holds, lock, turns.
-- KEYS[1]  the lock
-- ARGV[1]  the hold's token
-- ARGV[2]  the channel to publish on; empty: none
-- ARGV[3]  how long the readers have their turn after a writer, ms
-- reply    1 released, 0 not held: the hold is gone or has expired
local lock, other = open(KEYS[1], ARGV[1])
if other then
  return other.err and other or 0
end
local till = lock and parse_end(lock.own)
if not till then
  return 0
end
local wrote, found = lock.writer == ARGV[1] or lock.gone == ARGV[1], {}
if not wrote and not (lock.last == ARGV[1] and redis.call('HLEN', KEYS[1]) == 3) then -- not the only hold
  found = find_holder(lock, false, ARGV[1])
  if found.token or broken then
    redis.call('HDEL', KEYS[1], ARGV[1])
    if not broken then
      store_found(lock, found)
    end
    return till > lock.now and 1 or 0
  end
end
if lock.needed > lock.now then
  if wrote then
    start_readers_turn(lock, math.min(till, lock.now), tonumber(ARGV[3]))
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
if ARGV[2] ~= '' then
  redis.pcall('PUBLISH', ARGV[2], '')
end
return till > lock.now and 1 or 0
