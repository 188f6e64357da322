-- Finds keys that may hold locks, in one small step of a scan.
-- ARGV[1]  the cursor, '0' at first
-- ARGV[2]  the pattern of the keys
-- reply    {cursor, key, type, key, type, ...}   the next cursor, '0' at the end; the type is that of
--                                                TYPE; a string is listed if it begins like a token
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 100)
local reply = {found[1]}
for _, key in ipairs(found[2]) do
  local kind = redis.call('TYPE', key).ok
  if kind == 'string' then
    local start = redis.call('GETRANGE', key, 0, 23)
    local token, rest = string.match(start, '^~?([%w_-]+)(.?)') -- ~ in a minimum hold
    if not token or #token ~= 22 or rest ~= '' and rest ~= '|' then
      kind = ''
    end
  end
  if kind == 'string' or kind == 'hash' or kind == 'zset' then
    reply[#reply + 1] = key
    reply[#reply + 1] = kind
  end
end
return reply
