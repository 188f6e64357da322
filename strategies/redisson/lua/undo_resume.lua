-- Undoes a resume: puts the old field back. The lease stays as it is. Needs is_held.
-- KEYS[1]  the lock
-- ARGV[1]  the field that the resume set
-- ARGV[2]  the field that it replaced
-- reply    1 undone, 0 nothing to undo
local held, wrong = is_held(KEYS[1], ARGV[1])
if wrong then
  return wrong
end
if not held then
  return 0
end
-- A server out of memory refuses a script's first write unless it needs no memory.
local left = redis.call('PTTL', KEYS[1])
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], left)
end
redis.call('HSET', KEYS[1], ARGV[2], '1')
redis.call('HDEL', KEYS[1], ARGV[1])
return 1
