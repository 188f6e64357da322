-- The common case of release: the only hold there is, live or not, and nobody waits. It comes first
-- because it needs none of the functions below, which Lua makes in each call. KEYS, ARGV and reply
-- are those of release.
if not ARGV[6] and (not KEYS[2] or redis.call('EXISTS', KEYS[2]) == 0) then
  local f = redis.pcall('HMGET', KEYS[1], 'kind', 'last', ARGV[1], 'writer')
  local till = f[3] and string.match(f[3], '^(%d+) %d+ %d+:')
  if f[1] == 'rwhash' and f[2] == ARGV[1] and till and #till <= 15 and (not f[4] or f[4] == ARGV[1])
      and redis.call('HLEN', KEYS[1]) == (f[4] and 4 or 3) then
    local time = redis.call('TIME')
    redis.call('DEL', KEYS[1])
    return tonumber(till) > time[1] * 1000 + math.floor(time[2] / 1000) and (KEYS[2] and 2 or 1) or 0
  end
end

