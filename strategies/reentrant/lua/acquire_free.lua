-- The common case of acquire: a free name, no fence, and nobody waits, neither in this process nor
-- at the server. It comes first because it needs none of the functions below, which Lua makes in
-- each call. KEYS, ARGV and reply are those of acquire.
if ARGV[3] == '0' and (ARGV[11] == '' or ARGV[11] == '-1') and redis.call('EXISTS', unpack(KEYS)) == 0 then
  local time = redis.call('TIME')
  local till = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2])
  if ARGV[5] == '' then
    redis.call('HSET', KEYS[1], 'kind', 'reentrant', 'owner', ARGV[4], 'last', ARGV[1], ARGV[1], till)
  else
    redis.call('HSET', KEYS[1], 'kind', 'reentrant', 'owner', ARGV[4], 'last', ARGV[1], ARGV[1], till, 'note', ARGV[5])
  end
  local kept = redis.pcall('PEXPIREAT', KEYS[1], till)
  if kept ~= 1 then -- the user may not set an expiry: no lock stays without one
    redis.call('DEL', KEYS[1])
    return kept
  end
  return {1, '0'}
end

