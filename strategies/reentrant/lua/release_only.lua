-- The common case of release: the only hold there is, live or not, and nobody waits. It comes first
-- because it needs none of the functions below, which Lua makes in each call. KEYS, ARGV and reply
-- are those of release.
if not ARGV[6] and (not KEYS[2] or redis.call('EXISTS', KEYS[2]) == 0) then
  local f = redis.pcall('HMGET', KEYS[1], 'kind', 'owner', 'last', ARGV[1], 'note', 'fence', 'rough')
  if f[1] == 'reentrant' and f[2] and f[3] == ARGV[1] and f[4] and #f[4] <= 15 and string.match(f[4], '^%d+$') then
    local fields = 4
    for i = 5, 7 do
      fields = fields + (f[i] and 1 or 0)
    end
    if redis.call('HLEN', KEYS[1]) == fields then
      local time = redis.call('TIME')
      redis.call('DEL', KEYS[1])
      return tonumber(f[4]) > time[1] * 1000 + math.floor(time[2] / 1000) and (KEYS[2] and 2 or 1) or 0
    end
  end
end

