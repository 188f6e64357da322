-- Reads the counter.
-- KEYS[1]  a hash with the fields value and fence
-- reply    the value, 0 where there is none
return tonumber(redis.call('HGET', KEYS[1], 'value') or 0)
