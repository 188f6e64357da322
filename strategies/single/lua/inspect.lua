-- Reads what is stored.
-- KEYS[1]  the lock
-- reply    {value, ms}: what is stored or nil, and its PTTL
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
  return held
end
return {held, redis.call('PTTL', KEYS[1])}
