-- count(key, fence, last, ttl) sets the fence counter to fence, or leaves it at last where that is more, and lets it live
-- for ttl ms at least.
local function count(key, fence, last, ttl)
  if last and tonumber(last) > tonumber(fence) then
    fence = last
  end
  local kept = math.max(tonumber(ttl), redis.call('PTTL', key))
  redis.call('SET', key, fence, 'PX', string.format('%.0f', kept))
end

