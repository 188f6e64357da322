-- What the scripts have in common. A lock is a hash:
--   kind     'reentrant'
--   owner    who holds
--   note     the note, where one was given
--   fence    the fencing token of the tenure, where one was minted
--   last     the token of the hold that ends last; of any hold while rough is there
--   rough    '1': a hold may end later than last's, at the key's expiry at the latest
--   <token>  22 characters: a hold, and when it ends, in ms by the server's clock
-- The key expires with the hold that ends last, or later while rough is there.

local few = 64 -- up to so many fields all are looked at, of more only so many
local every = 16 -- after so many new holds dead ones are looked for

local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- open(key) returns the lock, or nil where there is none, or nil and the reply that says what stands there instead.
local function open(key)
  local f = redis.pcall('HMGET', key, 'kind', 'owner', 'note', 'fence', 'last', 'rough')
  if f.err then
    return nil, f
  end
  if f[1] == 'reentrant' and f[2] and f[5] then
    return {key = key, owner = f[2], note = f[3], fence = f[4], last = f[5], rough = f[6], now = clock()}
  end
  if f[1] then
    return nil, {-2, 'the lock of another strategy'}
  end
  if redis.call('EXISTS', key) == 1 then
    return nil, {-2, 'a hash that is no lock'}
  end
end

-- ends(lock, token) returns when a hold ends or ended, nil where there is none.
local function ends(lock, token)
  return tonumber(redis.call('HGET', lock.key, token) or '')
end

-- live(lock, token) returns when a hold ends, nil where there is none or where it ended.
local function live(lock, token)
  local till = ends(lock, token)
  return till and till > lock.now and till or nil
end

-- look(lock, fields) finds among fields and their values the hold that ends last, and a bounded number of dead ones.
local function look(lock, fields)
  local found = {till = lock.now, dead = {}}
  for i = 1, #fields, 2 do
    local till = #fields[i] == 22 and (tonumber(fields[i + 1]) or 0)
    if till and till > found.till then
      found.token, found.till = fields[i], till
    elseif till and till <= lock.now and #found.dead < few then
      found.dead[#found.dead + 1] = fields[i]
    end
  end
  return found
end

local function some(lock)
  return look(lock, redis.call('HRANDFIELD', lock.key, few, 'WITHVALUES'))
end

-- holder(lock, exact) finds a live hold: with exact the one that ends last, else any. Its token is nil where none is live.
-- It costs O(1), unless last ended or, with exact, is rough.
local function holder(lock, exact)
  local till = live(lock, lock.last)
  if till and not (exact and lock.rough) then
    return {token = lock.last, till = till, known = true}
  end
  if not exact and redis.call('HLEN', lock.key) > few then
    local found = some(lock)
    if found.token then
      found.rough = true
      return found
    end
  end
  return look(lock, redis.call('HGETALL', lock.key))
end

-- text(ms) writes a time with all its digits.
local function text(ms)
  return string.format('%.0f', ms)
end

-- Here the writing begins.

local function purge(lock, dead)
  if dead and #dead > 0 then
    redis.call('HDEL', lock.key, unpack(dead))
  end
end

-- settle(lock, found) writes down what holder found.
local function settle(lock, found)
  if found.known then
    return
  end
  redis.call('HSET', lock.key, 'last', found.token)
  if found.rough then
    redis.call('HSET', lock.key, 'rough', '1')
  else
    redis.call('HDEL', lock.key, 'rough')
    redis.call('PEXPIREAT', lock.key, text(found.till))
  end
  purge(lock, found.dead)
end

-- keep(lock, token, till) writes a hold. The key's expiry never shrinks by it.
local function keep(lock, token, till)
  local last, latest = ends(lock, lock.last), nil
  if last and not lock.rough then
    latest = till > last
  else
    latest = till - lock.now >= redis.call('PTTL', lock.key)
  end
  redis.call('HSET', lock.key, token, text(till))
  if latest then
    redis.call('HSET', lock.key, 'last', token)
    redis.call('HDEL', lock.key, 'rough')
    redis.call('PEXPIREAT', lock.key, text(till))
  end
end

