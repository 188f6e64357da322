-- Releases a hold: compares, deletes, and wakes all waiters, as an unlock of Redisson does. It
-- removes the field and not the key: an RReadWriteLock may have entered the hash beside us. Needs
-- is_held.
-- KEYS[1]  the lock
-- ARGV[1]  our field, or the one that a release with ARGV[4] left
-- ARGV[2]  the channel to publish on; empty: wake nobody
-- ARGV[3]  how the driver's own subscriptions are woken: 0 by PUBLISH, 1 by PUBLISH at the only
--          server, 2 by SPUBLISH in a cluster
-- ARGV[4]  for how long the name stays taken, ms, at most until the lease would have ended; waiters
--          are woken, so that they learn the time. Absent: the lock is free. Ignored if an
--          RReadWriteLock has entered: the lease is its own
-- reply    1 released, 0 not ours
local held, wrong = is_held(KEYS[1], ARGV[1])
if wrong then
  return wrong
end
if not held then
  return 0
end
local beside = redis.call('HLEN', KEYS[1]) > 1 -- a write lock has entered
if ARGV[4] and not beside then
  local left, keep = redis.call('PTTL', KEYS[1]), tonumber(ARGV[4])
  keep = math.max(left < 0 and keep or math.min(left, keep), 1)
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', keep)) -- first: it needs no memory
  redis.call('HSET', KEYS[1], '~' .. ARGV[1], '1')
end
redis.call('HDEL', KEYS[1], ARGV[1])
if beside and redis.call('HLEN', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
  redis.call('HDEL', KEYS[1], 'mode') -- its holder has left, and left the mode because of our field
end
if ARGV[2] ~= '' then
  if ARGV[3] ~= '2' then
    redis.pcall('PUBLISH', ARGV[2], '0')
  end
  if ARGV[3] ~= '1' then -- a driver may not know yet that this is a cluster with sharded channels
    redis.pcall('SPUBLISH', ARGV[2], '0')
  end
end
return 1
