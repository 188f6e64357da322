-- Wakes a waiter of python-redis-lock behind a release that leaves the lock free, as its own release
-- does. Needs release.
-- KEYS, ARGV and reply are those of release. KEYS[1] begins with 'lock:'. The list is not among the
-- KEYS: a node of a cluster without its slot leaves it out.
local reply = release()
if type(reply) == 'number' and redis.call('PTTL', KEYS[1]) == -2 then
  local list = 'lock-signal:' .. string.sub(KEYS[1], #'lock:' + 1)
  redis.pcall('DEL', list)
  redis.pcall('LPUSH', list, '1')
  redis.pcall('PEXPIRE', list, 1000)
end
return reply
