-- Holds as fields of a hash. A strategy's form, before this, is the pattern of a hold's value: its first capture is when the hold
-- ends, two more are numbers. Its open(key) reads the lock into a table:
--   key     the hash
--   now     the server's time, ms
--   last    the token of the hold that ends last; of any hold while rough is there; may be of none where none is live
--   rough   a hold may end later than last's, at the key's expiry at the latest; how many holds came since that began
--   needed  until when the key is needed for something else than holds, ms; nil: for nothing
-- A hold is a field of 22 characters, its token. Its value begins with when it ends, in ms by the server's clock. What else
-- the hash has are names of another length. The key expires with the hold that ends last, or later.

local few = 64 -- up to so many fields all are looked at, of more only so many
local every = 16 -- after so many new holds dead ones are looked for

-- shown(text) returns an owner or a note for a reply; '' for none, and for what is too long to be ours.
local function shown(text)
  return text and #text <= 1024 and text or ''
end

local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- broken: something was read that no script of ours writes. A script that would grant or tell anything returns unknown then,
-- before its first write; one that ends or extends a hold goes on with that one alone.
local broken = false
local unknown = {-2, 'a lock that is not of our form'}

-- digits(text) returns a number of ms, or of something that is no larger; 0 where there is none.
local function digits(text)
  if text and (#text > 16 or not string.match(text, '^%d+$')) then
    broken = true
    return 0
  end
  return tonumber(text or 0)
end

-- till_of(value) returns when a hold of that value ends, nil for what is none.
local function till_of(value)
  if not value then
    return nil
  end
  local till, number, length = string.match(value, form)
  if not till or #till > 15 or number and (#number > 16 or #length > 4) then
    broken = true
    return nil
  end
  return tonumber(till)
end

-- ends(lock, token) returns when a hold ends or ended, nil where there is none.
local function ends(lock, token)
  return token and till_of(redis.call('HGET', lock.key, token))
end

-- live(lock, token) returns when a hold ends, nil where there is none or where it ended.
local function live(lock, token)
  local till = ends(lock, token)
  return till and till > lock.now and till or nil
end

-- last_end(lock) returns when last ends or ended, nil where there is none.
local function last_end(lock)
  if lock.ending == nil then
    lock.ending = ends(lock, lock.last) or false
  end
  return lock.ending or nil
end

-- look(lock, fields, except) finds among fields and their values the hold that ends last, but not except, and a bounded
-- number of dead ones.
local function look(lock, fields, except)
  local found = {till = lock.now, dead = {}}
  for i = 1, #fields, 2 do
    local till = #fields[i] == 22 and fields[i] ~= except and till_of(fields[i + 1])
    if till and till > found.till then
      found.token, found.till = fields[i], till
    elseif till and till <= lock.now and #found.dead < few then
      found.dead[#found.dead + 1] = fields[i]
    end
  end
  return found
end

local function some(lock, except)
  return look(lock, redis.call('HRANDFIELD', lock.key, few, 'WITHVALUES'), except)
end

-- holder(lock, exact, except) finds a live hold that is not except: with exact the one that ends last, else any. Its token
-- is nil where none is live. It costs O(1), unless last is except or ended or, with exact, is rough.
local function holder(lock, exact, except)
  local till = lock.last ~= except and last_end(lock)
  if till and till > lock.now and not (lock.rough and (exact or redis.call('HLEN', lock.key) <= few)) then
    return {token = lock.last, till = till, known = true}
  end
  if not exact and redis.call('HLEN', lock.key) > few then
    local found = some(lock, except)
    if found.token then
      found.rough = true
      return found
    end
  end
  return look(lock, redis.call('HGETALL', lock.key), except)
end

-- text(ms) writes a time with all its digits.
local function text(ms)
  return string.format('%.0f', ms)
end

-- Here the writing begins.

-- unbounded(lock) lets a script go on writing on a server out of memory: there the first write is refused unless it is one
-- that needs none. It is for what is held already. No field has this name.
local function unbounded(lock)
  redis.call('HDEL', lock.key, '')
end

local function purge(lock, dead)
  if dead and #dead > 0 then
    redis.call('HDEL', lock.key, unpack(dead))
  end
end

-- expire(lock, till) sets the key's expiry to till, or to when it is needed for something else.
local function expire(lock, till)
  redis.call('PEXPIREAT', lock.key, text(math.max(till, lock.needed or 0)))
end

-- begin(lock, key, fields, till) writes a lock in place of what is left of the one before. It returns nil or, where the user
-- may not set an expiry, the error: no lock stays without one.
local function begin(lock, key, fields, till)
  if lock then
    redis.call('DEL', key)
  end
  redis.call('HSET', key, unpack(fields))
  local kept = redis.pcall('PEXPIREAT', key, text(till))
  if kept ~= 1 then
    redis.call('DEL', key)
    return kept
  end
end

-- settle(lock, found) writes down what holder found.
local function settle(lock, found)
  if found.known then
    return
  end
  redis.call('HSET', lock.key, 'last', found.token)
  if found.rough then
    if not lock.rough then
      redis.call('HSET', lock.key, 'rough', '0')
    end
  else
    redis.call('HDEL', lock.key, 'rough')
    expire(lock, found.till)
  end
  purge(lock, found.dead)
end

-- keep(lock, token, till, rest) writes a hold: when it ends, then rest. The key's expiry never shrinks by it.
local function keep(lock, token, till, rest)
  local last, latest = last_end(lock), nil
  if lock.rough or broken then
    latest = till - lock.now >= redis.call('PTTL', lock.key)
  else
    latest = not last or till > last
  end
  redis.call('HSET', lock.key, token, text(till) .. (rest or ''))
  if latest then
    redis.call('HSET', lock.key, 'last', token)
    redis.call('HDEL', lock.key, 'rough')
    lock.rough = nil
    expire(lock, till)
  end
end

-- sweep(lock) is for each new hold: it removes a few dead ones, at some of its calls. What is rough it makes exact after so
-- many that each call costs O(1) on average.
local function sweep(lock)
  local n = redis.call('HLEN', lock.key)
  if lock.rough then
    local came = tonumber(lock.rough) + 1
    if 4 * came >= n then
      settle(lock, holder(lock, true))
      return
    end
    redis.call('HSET', lock.key, 'rough', came)
  end
  if n % every == 0 then
    purge(lock, some(lock).dead)
  end
end

