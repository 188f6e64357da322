-- What the scripts share. A semaphore is a sorted set. Each hold is a member: its value, with the
-- time at which the hold ends as the score, in ms by the server's clock. Up to three more members
-- have negative scores:
--   permits  minus the limit
--   used     minus one, minus the permits of all holds in the set, also those that have ended
--   kept     minus one, minus the number of kept holds in the set; 0 of them if it is missing
-- A value is "<token> <permits> <bytes of owner>:<owner><note>". A release whose MinHold has not
-- passed leaves a kept hold: the same value behind a '~', which only locker.Break sends. The set
-- expires with the hold that ends last, or later.

local batch = 1000 -- ended holds that one command reads or removes

local unknown = {-2, 'a semaphore that is not of our form'}

local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- whole(number) returns a number with all its digits.
local function whole(number)
  return string.format('%.0f', number)
end

-- permits_of(value) returns the permits of a hold; nil if its value is not of our form.
local function permits_of(value)
  local token, permits = string.match(value, '^~?([%w_-]+) (%d+) %d+:')
  return token and #token == 22 and #permits <= 10 and tonumber(permits) or nil
end

-- count(score, least) returns the count that a negative score encodes; nil if it is not a whole
-- number from least to 2^53.
local function count(score, least)
  local n = score and -tonumber(score)
  return n and n >= least and n <= 2 ^ 53 and n % 1 == 0 and n or nil
end

-- open(key) returns the semaphore, or nil if the key does not exist. If the key holds anything else
-- than a semaphore of ours, it returns nil and a reply that says what.
local function open(key)
  local limit = redis.pcall('ZSCORE', key, 'permits')
  if type(limit) == 'table' then
    return nil, limit
  end
  if not limit then
    if redis.call('EXISTS', key) == 1 then
      return nil, {-2, 'a sorted set that is no semaphore'}
    end
    return nil
  end
  local used = count(redis.call('ZSCORE', key, 'used'), 1)
  limit = count(limit, 1)
  if not limit or not used then
    if redis.call('EXISTS', key) == 1 then
      return nil, unknown
    end
    return nil -- it has expired since, at a server whose clock goes on during a script
  end
  return {key = key, now = clock(), limit = limit, stored = limit, used = used - 1, dead = {}, kept = 0}
end

-- end_of(lock, value) returns when a hold ends or ended; nil if there is none.
local function end_of(lock, value)
  return tonumber(redis.call('ZSCORE', lock.key, value) or nil)
end

-- live_end(lock, value) returns when a hold ends; nil if there is none or it has ended.
local function live_end(lock, value)
  local till = lock and end_of(lock, value)
  return till and till > lock.now and till or nil
end

-- live_holds(lock) returns the number of holds that have not ended, also of kept ones.
local function live_holds(lock)
  return redis.call('ZCOUNT', lock.key, '(' .. whole(lock.now), '+inf')
end

-- kept_holds(lock) returns the number of kept holds that are stored.
local function kept_holds(lock)
  return (count(redis.call('ZSCORE', lock.key, 'kept'), 1) or 1) - 1
end

-- free(lock) returns how many permits are free. It is negative after the limit has shrunk.
local function free(lock)
  return lock.limit - lock.used
end

-- find_ended(lock, wanted) finds ended holds until wanted permits are free or it has found them
-- all. It writes nothing: it lists them in lock.dead, and takes them off lock.used and lock.kept.
-- If one of them is not of our form, it changes nothing and returns false.
local function find_ended(lock, wanted)
  local used, kept, dead = lock.used, lock.kept, {}
  while lock.limit - used < wanted do
    local found = redis.call('ZRANGEBYSCORE', lock.key, 0, lock.now, 'LIMIT', batch * #dead, batch)
    if #found == 0 then
      break
    end
    for _, value in ipairs(found) do
      local permits = permits_of(value)
      if not permits then
        return false
      end
      used = used - permits
      if string.sub(value, 1, 1) == '~' then
        kept = kept - 1
      end
    end
    dead[#dead + 1] = found
  end
  lock.used, lock.kept, lock.dead = used, kept, dead
  return true
end

-- The functions below write.

-- store(lock, ...) removes the holds that find_ended found, and stores the limit and the permits in
-- use, and further scores and members if given. lock.kept is added to the number of kept holds.
local function store(lock, ...)
  for _, found in ipairs(lock.dead) do
    redis.call('ZREM', lock.key, unpack(found))
  end
  if lock.kept ~= 0 then
    redis.call('ZADD', lock.key, whole(-1 - math.max(kept_holds(lock) + lock.kept, 0)), 'kept')
  end
  redis.call('ZADD', lock.key, whole(-lock.limit), 'permits', whole(-1 - lock.used), 'used', ...)
end

-- keep(lock, till) extends the expiry of the set to till, ms, if it is earlier. A set that somebody
-- left without one gets that of the hold that ends last.
local function keep(lock, till)
  local left = redis.call('PTTL', lock.key)
  if left == -1 then
    till = math.min(tonumber(redis.call('ZRANGE', lock.key, -1, -1, 'WITHSCORES')[2]), 2 ^ 53)
  end
  if left < till - lock.now then
    redis.call('PEXPIREAT', lock.key, whole(till))
  end
end
