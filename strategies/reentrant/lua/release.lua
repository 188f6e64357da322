-- Releases a hold. With the last live one the lock is free, and those who wait are told; a publish that is refused changes
-- nothing. Needs holds and open.
-- KEYS[1]  the lock
-- ARGV[1]  the hold's token
-- ARGV[2]  the channel to publish on; empty: none
-- reply    1 released, 0 not held: gone, or its lease had ended
local lock, other = open(KEYS[1])
if other then
  return other.err and other or 0
end
local till = lock and ends(lock, ARGV[1])
if not till then
  return 0
end
local found = holder(lock, false, ARGV[1])
redis.call('HDEL', KEYS[1], ARGV[1])
if broken then
  return till > lock.now and 1 or 0
end
if found.token then
  settle(lock, found)
else
  redis.call('DEL', KEYS[1])
  if ARGV[2] ~= '' then
    redis.pcall('PUBLISH', ARGV[2], '')
  end
end
return till > lock.now and 1 or 0
