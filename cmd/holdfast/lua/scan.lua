-- Finds the keys that may hold locks, in one small step of a scan. Needs strategy_of.
-- ARGV[1]  the cursor, '0' at first
-- ARGV[2]  the pattern of the keys
-- ARGV[3]  '1' to find also the strings that single has not written
-- reply    {cursor, key, strategy, key, strategy, ...}
--                   the next cursor, '0' at the end; the keys of which strategy_of returns a
--                   strategy, or an error
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 100)
local reply = {found[1]}
for _, key in ipairs(found[2]) do
  local kind = redis.pcall('TYPE', key)
  local strategy = kind.err and '-' .. kind.err or strategy_of(key, kind.ok)
  local moving = string.find(strategy, '^%-.* non local key') -- to this node of a Cluster
  local foreign = string.find(strategy, '^string') and ARGV[3] ~= '1'
  if not moving and not foreign and strategy ~= '' and string.sub(strategy, 1, 1) ~= '!' then
    reply[#reply + 1] = key
    reply[#reply + 1] = strategy
  end
end
return reply
