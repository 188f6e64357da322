-- The common case of acquire: a free name, no fence, and nobody waits. It comes first because it
-- needs none of the functions below, which Lua makes in each call. KEYS, ARGV and reply are those
-- of acquire.
if ARGV[3] == '0' and redis.call('EXISTS', unpack(KEYS)) == 0 then
  local time = redis.call('TIME')
  local till = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2])
  local hold = till .. ' 0 ' .. #ARGV[4] .. ':' .. ARGV[4] .. ARGV[5]
  if ARGV[6] == 'shared' then
    redis.call('HSET', KEYS[1], 'kind', 'rwhash', 'last', ARGV[1], ARGV[1], hold)
  else
    redis.call('HSET', KEYS[1], 'kind', 'rwhash', 'last', ARGV[1], ARGV[1], hold, 'writer', ARGV[1])
  end
  local kept = redis.pcall('PEXPIREAT', KEYS[1], till)
  if kept ~= 1 then -- the user may not set an expiry: no lock stays without one
    redis.call('DEL', KEYS[1])
    return kept
  end
  return {1, '0', 0}
end

