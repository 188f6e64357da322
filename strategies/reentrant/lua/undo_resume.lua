-- Undoes a resume: puts the old token back. The lease stays as it is. Needs holds, open.
-- KEYS[1]  the lock
-- ARGV[1]  the token that the resume set
-- ARGV[2]  the token that it replaced
-- reply    1 undone, 0 nothing to undo, or the hold has expired
local lock, other = open(KEYS[1])
if other then
  return other.err and other or 0
end
local till = lock and live_end(lock, ARGV[1])
if not till then
  return 0
end
redis.call('HDEL', KEYS[1], ARGV[1]) -- first: it needs no memory
redis.call('HSET', KEYS[1], ARGV[2], format_ms(till))
add_recent(lock, ARGV[2], till)
if lock.last == ARGV[1] then
  redis.call('HSET', KEYS[1], 'last', ARGV[2])
end
return 1
