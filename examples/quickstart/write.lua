-- Writes the counter, unless the holder of a later fencing token wrote before.
-- KEYS[1]  a hash with the fields value and fence
-- ARGV[1]  the value
-- ARGV[2]  the writer's fencing token
-- reply    1 written, 0 refused
if tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) > tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'value', ARGV[1], 'fence', ARGV[2])
redis.call('PEXPIRE', KEYS[1], 3600000)
return 1
