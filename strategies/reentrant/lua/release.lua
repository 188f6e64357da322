-- Releases a hold. With the last live one the lock is free, and that is published; a PUBLISH that
-- is refused changes nothing. Needs holds, open.
-- KEYS[1]  the lock
-- ARGV[1]  the hold's token
-- ARGV[2]  the channel to publish on; empty: none
-- reply    1 released, 0 not held: the hold is gone or has expired
local lock, other = open(KEYS[1])
if other then
  return other.err and other or 0
end
local till = lock and hold_end(lock, ARGV[1])
if not till then
  return 0
end
local found = find_holder(lock, false, ARGV[1])
redis.call('HDEL', KEYS[1], ARGV[1])
if broken then
  return till > lock.now and 1 or 0
end
if found.token then
  store_found(lock, found)
else
  redis.call('DEL', KEYS[1])
  if ARGV[2] ~= '' then
    redis.pcall('PUBLISH', ARGV[2], '')
  end
end
return till > lock.now and 1 or 0
