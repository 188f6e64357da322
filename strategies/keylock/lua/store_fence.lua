-- store_fence(key, fence, last, ttl) sets the counter to fence, or to last if that is higher. The
-- counter then lives for at least ttl ms; its expiry never shrinks.
local function store_fence(key, fence, last, ttl)
  if last and tonumber(last) > tonumber(fence) then
    fence = last
  end
  local kept = math.max(tonumber(ttl), redis.call('PTTL', key))
  redis.call('SET', key, fence, 'PX', string.format('%.0f', kept))
end

