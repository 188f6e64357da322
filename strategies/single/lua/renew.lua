-- Extends the lease of a hold. Never shortens it, never brings it back.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter; absent: not fenced
-- ARGV[1]  our value
-- ARGV[2]  TTL of the lock, ms
-- ARGV[3]  TTL of the counter, ms
-- reply    1 extended, 0 not ours
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
  return held
end
if held ~= ARGV[1] then
  return 0
end
for i = 1, #KEYS do
  local ttl = ARGV[i + 1]
  if redis.call('PTTL', KEYS[i]) < tonumber(ttl) then
    redis.call('PEXPIRE', KEYS[i], ttl)
  end
end
return 1
