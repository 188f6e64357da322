-- Holds as fields of a hash. A strategy's form, before this, is the pattern of a hold's value: its first capture is when the hold
-- ends, two more are numbers. Its open(key) reads the lock into a table:
--   key     the hash
--   now     the server's time, ms
--   last    the token of the hold that ends last; of any hold while rough is there; may be of none where none is live
--   rough   a hold may end later than last's, at the key's expiry at the latest; how many holds came since that began
--   recent  the tokens of some holds, one after another; nil where it has few fields
--   beyond  every live hold is one of recent or ends by then, ms
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

-- broken is set when a field has a value that no script of ours writes. Scripts that acquire,
-- resume, convert, inspect or raise the fence then return unknown before their first write. Those
-- that renew or release a hold go on with that hold alone.
local broken = false
local unknown = {-2, 'a lock that is not of our form'}

-- digits(text) returns text as a number of at most 16 digits; 0 if text is nil or malformed.
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

-- recents(lock, recent, beyond) puts two fields of the hash into the lock.
local function recents(lock, recent, beyond)
  if recent and beyond then
    lock.recent, lock.beyond = recent, digits(beyond)
    broken = broken or #recent % 22 ~= 0 or #recent > 22 * few
  end
  return lock
end

-- last_end(lock) returns when last ends or ended, nil where there is none.
local function last_end(lock)
  if lock.ending == nil then
    lock.ending = ends(lock, lock.last) or false
  end
  return lock.ending or nil
end

-- ended(lock, value) reports whether the hold of a value has ended. It is cheap, and does not check
-- the rest of the value.
local function ended(lock, value)
  local till = string.match(value, '^%d+')
  return till and #till <= 15 and tonumber(till) <= lock.now
end

-- look(lock, fields, except, most) finds, among fields and their values, the live hold that ends
-- last, without except. It lists up to most ended holds (default few) in dead and up to few live
-- ones in live; all other live ones end by rest.
local function look(lock, fields, except, most)
  local found = {till = lock.now, dead = {}, live = {}, rest = 0}
  most = most or few
  for i = 1, #fields, 2 do
    local value = #fields[i] == 22 and fields[i] ~= except and fields[i + 1]
    local till = value and (#found.dead < most or not ended(lock, value)) and till_of(value)
    if till and till > lock.now then
      if till > found.till then
        found.token, found.till = fields[i], till
      end
      if #found.live < few then
        found.live[#found.live + 1] = fields[i]
      else
        found.rest = math.max(found.rest, till)
      end
    elseif till and #found.dead < most then
      found.dead[#found.dead + 1] = fields[i]
    end
  end
  return found
end

-- among(lock, except) is look among recent.
local function among(lock, except)
  local names, fields = {}, {}
  for i = 1, #lock.recent, 22 do
    names[#names + 1] = string.sub(lock.recent, i, i + 21)
  end
  local values = #names > 0 and redis.call('HMGET', lock.key, unpack(names)) or {}
  for i, name in ipairs(names) do
    if values[i] then
      fields[#fields + 1], fields[#fields + 2] = name, values[i]
    end
  end
  return look(lock, fields, except)
end

local function some(lock, except)
  return look(lock, redis.call('HRANDFIELD', lock.key, few, 'WITHVALUES'), except)
end

-- holder(lock, exact, except) finds a live hold that is not except: with exact the one that ends
-- last, else any. Its token is nil where none is live. It costs O(1) if last is live, not except
-- and, with exact, not rough. Else it reads the recent holds, or some at random, and all fields
-- only where these do not decide.
local function holder(lock, exact, except)
  local till = lock.last ~= except and last_end(lock)
  if till and till > lock.now and not (lock.rough and (exact or redis.call('HLEN', lock.key) <= few)) then
    return {token = lock.last, till = till, known = true}
  end
  local many = redis.call('HLEN', lock.key) > few
  if many and lock.recent then
    local found = among(lock, except)
    if found.token and (not exact or found.till >= lock.beyond) then
      found.rough = found.till < lock.beyond
      return found
    end
    if not found.token and lock.beyond <= lock.now then
      found.dead = some(lock, except).dead
      return found
    end
  end
  if not exact and many then
    local found = some(lock, except)
    if found.token then
      found.rough = true
      return found
    end
  end
  local found = look(lock, redis.call('HGETALL', lock.key), except, 16 * few)
  found.all = many
  return found
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

-- forget(lock) removes recent where the hash has few fields.
local function forget(lock)
  if lock.recent and redis.call('HLEN', lock.key) <= few then
    lock.recent = nil
    redis.call('HDEL', lock.key, 'recent', 'beyond')
  end
end

local function purge(lock, dead)
  if dead and #dead > 0 then
    redis.call('HDEL', lock.key, unpack(dead))
    forget(lock)
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
  if found.all then
    redis.call('HSET', lock.key, 'recent', table.concat(found.live), 'beyond', text(found.rest))
  end
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

-- list(lock, token, till) adds a hold to recent, unless it ends by beyond. If more than half of a
-- full recent are live, it is emptied and beyond covers them.
local function list(lock, token, till)
  local at = lock.recent and string.find(lock.recent, token, 1, true)
  if not lock.recent or till <= lock.beyond or at and at % 22 == 1 then
    return
  end
  lock.recent = lock.recent .. token
  if #lock.recent > 22 * few then
    local found = among(lock)
    if #found.live > few / 2 then
      found.live, lock.beyond = {}, math.max(lock.beyond, found.till)
      redis.call('HSET', lock.key, 'beyond', text(lock.beyond))
    end
    lock.recent = table.concat(found.live)
  end
  redis.call('HSET', lock.key, 'recent', lock.recent)
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
  list(lock, token, till)
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
  if n > few and not lock.recent then
    local found = {live = {}, rest = lock.now + redis.call('PTTL', lock.key)}
    if n <= 2 * few then
      found = look(lock, redis.call('HGETALL', lock.key))
    end
    lock.recent, lock.beyond = table.concat(found.live), found.rest
    redis.call('HSET', lock.key, 'recent', lock.recent, 'beyond', text(lock.beyond))
  else
    forget(lock)
  end
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

