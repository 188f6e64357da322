-- next_fence(key) returns the next fencing token in decimal, max(last + 1, the server's time in
-- microseconds), and the last one, nil if there is none. If the key holds no such number, it
-- returns nil and a text that says what it holds. It writes nothing. It needs read.
--
-- Numbers are doubles in Lua: exact up to 2^53, which microseconds reach in the year 2255.
local function next_fence(key)
  local last = read(key, 16)
  if type(last) == 'table' then
    if string.sub(last.err, 1, 9) ~= 'WRONGTYPE' then
      redis.call('GET', key) -- fails again, this time for the caller: of a permission, say
    end
    return nil, 'a value of another type'
  end
  if last == '' and redis.call('PTTL', key) == -2 then
    last = nil
  end
  if last and (not string.match(last, '^%d+$') or #last > 16 or tonumber(last) >= 9007199254740991) then
    return nil, 'no number'
  end
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  return string.format('%.0f', math.max((tonumber(last) or 0) + 1, now)), last
end

-- store_fence(key, fence, last, ttl) sets the counter to fence, or to last if that is higher, and
-- returns it. The counter then lives for at least ttl ms; its expiry never shrinks.
local function store_fence(key, fence, last, ttl)
  if last and tonumber(last) > tonumber(fence) then
    fence = last
  end
  local kept = math.max(tonumber(ttl), redis.call('PTTL', key))
  redis.call('SET', key, fence, 'PX', string.format('%.0f', kept))
  return fence
end

-- raise_fence(key, fence, last, ttl) is like store_fence, but does not set a counter that is
-- already as high as fence: a server at maxmemory would refuse that.
local function raise_fence(key, fence, last, ttl)
  if not last or tonumber(last) < tonumber(fence) then
    return store_fence(key, fence, last, ttl)
  end
  if redis.call('PTTL', key) < tonumber(ttl) then
    redis.call('PEXPIRE', key, ttl)
  end
  return last
end

-- mint_fence(key, ttl) stores the next fencing token and returns it. It returns '0' if key is nil:
-- the hold is not fenced. If the key holds no counter, it returns nil and a text, and writes
-- nothing.
local function mint_fence(key, ttl)
  if not key then
    return '0'
  end
  local fence, last = next_fence(key)
  if not fence then
    return nil, last
  end
  return store_fence(key, fence, last, ttl)
end

