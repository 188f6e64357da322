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
local counter = KEYS[2] and redis.pcall('GET', KEYS[2])
local keys = {KEYS[1]}
if type(counter) == 'string' and string.match(counter, '^%d+$') then
  keys[2] = KEYS[2] -- what else stands there is not ours
end
for i = 1, #keys do
  local ttl = ARGV[i + 1]
  if redis.call('PTTL', keys[i]) < tonumber(ttl) then
    redis.call('PEXPIRE', keys[i], ttl)
  end
end
return 1
