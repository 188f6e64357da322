-- Extends the lease of a hold. It never shortens one and never brings one back. It writes whenever
-- it replies 1, even if nothing changes: a WAIT behind it then speaks for all earlier writes. Needs
-- read, renew_fence.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- ARGV[1]  our value
-- ARGV[2]  TTL of the lock, ms
-- ARGV[3]  TTL of the counter, ms
-- reply    1 extended, 0 not ours
local held = read(KEYS[1], #ARGV[1])
if type(held) == 'table' then
  return held
end
if held ~= ARGV[1] then
  return 0
end
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2]))))
renew_fence(KEYS[2], ARGV[3])
return 1
