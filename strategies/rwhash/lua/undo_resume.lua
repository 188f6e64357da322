-- Undoes a resume that nobody knows of: puts the old token back. The lease stays as it is. Needs holds, lock.
-- KEYS[1]  the lock
-- ARGV[1]  the token that the resume set
-- ARGV[2]  the token that it replaced
-- reply    1 undone, 0 there was nothing to undo
local lock, other = open(KEYS[1], ARGV[1])
if other then
  return other.err and other or 0
end
if not lock or not lock.own then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[2], lock.own)
rename(lock, ARGV[1], ARGV[2])
return 1
