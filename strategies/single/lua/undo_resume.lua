-- Undoes a resume: puts the old value back. The lease stays as it is. Needs read.
-- KEYS[1]  the lock
-- ARGV[1]  the value that the resume set
-- ARGV[2]  the value that it replaced
-- reply    1 undone, 0 nothing to undo
local held = read(KEYS[1], #ARGV[1])
if type(held) == 'table' then
  return held
end
if held ~= ARGV[1] then
  return 0
end
-- A server out of memory refuses a script's first write unless it needs no memory.
local left = redis.call('PTTL', KEYS[1])
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], left)
end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1
