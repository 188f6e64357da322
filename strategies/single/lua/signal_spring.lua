-- Wakes the waiters of Spring Integration's PUB_SUB_LOCK behind a release that leaves the lock free.
-- Needs release, and registry, the length of the registry key.
-- KEYS, ARGV and reply are those of release. KEYS[1] begins with the registry key and a colon.
local reply = release()
if type(reply) == 'number' and redis.call('PTTL', KEYS[1]) == -2 then
  local channel = string.sub(KEYS[1], 1, registry) .. '-channel'
  redis.pcall('PUBLISH', channel .. ':' .. KEYS[1], KEYS[1])
  redis.pcall('PUBLISH', channel, KEYS[1]) -- for versions before 6.5.3
end
return reply
