-- Finds the masters of a Cluster.
-- reply  {host, port, host, port, ...}   each master once; an empty host is that of the server that was
--                                        asked
local reply, seen = {}, {}
for _, range in ipairs(redis.call('CLUSTER', 'SLOTS')) do
  local host, port = range[3][1] or '', tostring(range[3][2])
  if not seen[host .. ' ' .. port] then
    seen[host .. ' ' .. port] = true
    reply[#reply + 1] = host == '?' and '' or host
    reply[#reply + 1] = port
  end
end
return reply
