-- Undoes a resume: puts the old token back. The lease stays as it is. Needs holds, lock.
-- KEYS[1]  the lock
-- ARGV[1]  the token that the resume set
-- ARGV[2]  the token that it replaced
-- reply    1 undone, 0 nothing to undo, or the hold has expired
local lock, other = open(KEYS[1], ARGV[1])
if other then
  return other.err and other or 0
end
local till = lock and parse_end(lock.own)
if not till or till <= lock.now then
  return 0
end
rename_hold(lock, ARGV[1], ARGV[2]) -- first: it needs no memory
redis.call('HSET', KEYS[1], ARGV[2], lock.own)
add_recent(lock, ARGV[2], till)
return 1
