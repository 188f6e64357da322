-- Undoes a resume: puts the old value back. The lease stays as it is. Needs lock.
-- KEYS[1]  the semaphore
-- ARGV[1]  the value that the resume set
-- ARGV[2]  the value that it replaced
-- reply    1 undone, 0 nothing to undo, or the hold has expired
local lock, other = open(KEYS[1])
if other then
  return other.err and other or 0
end
local till = live_end(lock, ARGV[1])
if not till then
  return 0
end
redis.call('ZREM', KEYS[1], ARGV[1]) -- first: it needs no memory
redis.call('ZADD', KEYS[1], whole(till), ARGV[2])
return 1
