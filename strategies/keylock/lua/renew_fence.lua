-- renew_fence(key, ttl) lets the counter live for at least ttl ms. It does nothing if key is nil,
-- or if what the key holds is no counter. It needs read.
local function renew_fence(key, ttl)
  local counter = key and read(key, 16)
  if type(counter) == 'string' and string.match(counter, '^%d+$') and #counter <= 16
      and redis.call('PTTL', key) < tonumber(ttl) then
    redis.call('PEXPIRE', key, ttl)
  end
end

