-- Holds as fields of a hash. A strategy puts form before this, the pattern of a hold's value: its
-- first capture is when the hold ends, two more are numbers. Behind this it puts open(key), which
-- reads the lock into a table:
--   key     the hash
--   now     the server's time, ms
--   last    the token of the hold that ends last. With rough, of any hold; it may be of none if no
--           hold is live
--   rough   a hold may end later than last's, at the latest with the key; it counts the holds
--           that came since
--   recent  the tokens of some holds, one after another; nil if there are few fields
--   beyond  every live hold is in recent or ends by then, ms
--   needed  until when the key is needed for something other than holds, ms; nil: for nothing
-- A hold is a field of 22 characters, its token. Its value begins with its end, ms by the server's
-- clock. The other fields have names of another length. The key expires with the hold that ends
-- last, or later.

local few = 64 -- up to so many fields are all scanned; of more, only so many
local every = 16 -- each so many new holds, some dead ones are removed

-- shown(text) returns an owner or a note for a reply; '' for none, and for one that is too long to
-- be ours.
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

-- parse_digits(text) returns text as a number of at most 16 digits; 0 if text is nil or malformed.
local function parse_digits(text)
  if text and (#text > 16 or not string.match(text, '^%d+$')) then
    broken = true
    return 0
  end
  return tonumber(text or 0)
end

-- parse_end(value) returns when a hold of that value ends; nil if the value is nil or malformed.
local function parse_end(value)
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

-- hold_end(lock, token) returns when a hold ends or ended; nil if there is none.
local function hold_end(lock, token)
  return token and parse_end(redis.call('HGET', lock.key, token))
end

-- live_end(lock, token) returns when a hold ends; nil if there is none or it has ended.
local function live_end(lock, token)
  local till = hold_end(lock, token)
  return till and till > lock.now and till or nil
end

-- set_recent(lock, recent, beyond) stores two fields of the hash in the lock, which it returns.
local function set_recent(lock, recent, beyond)
  if recent and beyond then
    lock.recent, lock.beyond = recent, parse_digits(beyond)
    broken = broken or #recent % 22 ~= 0 or #recent > 22 * few
  end
  return lock
end

-- last_end(lock) returns when last ends or ended; nil if there is none.
local function last_end(lock)
  if lock.ending == nil then
    lock.ending = hold_end(lock, lock.last) or false
  end
  return lock.ending or nil
end

-- has_ended(lock, value) reports whether the hold of a value has ended. It is cheap, and does not
-- check the rest of the value.
local function has_ended(lock, value)
  local till = string.match(value, '^%d+')
  return till and #till <= 15 and tonumber(till) <= lock.now
end

-- scan(lock, fields, except, most) finds, among fields and their values, the live hold that ends
-- last, without except. It lists up to most ended holds (default few) in dead and up to few live
-- ones in live; all other live ones end by rest.
local function scan(lock, fields, except, most)
  local found = {till = lock.now, dead = {}, live = {}, rest = 0}
  most = most or few
  for i = 1, #fields, 2 do
    local value = #fields[i] == 22 and fields[i] ~= except and fields[i + 1]
    local till = value and (#found.dead < most or not has_ended(lock, value)) and parse_end(value)
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

-- scan_recent(lock, except) scans the holds in recent.
local function scan_recent(lock, except)
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
  return scan(lock, fields, except)
end

-- scan_random(lock, except) scans a few fields at random.
local function scan_random(lock, except)
  return scan(lock, redis.call('HRANDFIELD', lock.key, few, 'WITHVALUES'), except)
end

-- find_holder(lock, exact, except) finds a live hold that is not except: with exact the one that
-- ends last, else any. Its token is nil where none is live. It costs O(1) if last is live, not
-- except and, with exact, not rough. Else it reads the recent holds, or some at random, and all
-- fields only where these do not decide.
local function find_holder(lock, exact, except)
  local till = lock.last ~= except and last_end(lock)
  if till and till > lock.now and not (lock.rough and (exact or redis.call('HLEN', lock.key) <= few)) then
    return {token = lock.last, till = till, known = true}
  end
  local many = redis.call('HLEN', lock.key) > few
  if many and lock.recent then
    local found = scan_recent(lock, except)
    if found.token and (not exact or found.till >= lock.beyond) then
      found.rough = found.till < lock.beyond
      return found
    end
    if not found.token and lock.beyond <= lock.now then
      found.dead = scan_random(lock, except).dead
      return found
    end
  end
  if not exact and many then
    local found = scan_random(lock, except)
    if found.token then
      found.rough = true
      return found
    end
  end
  local found = scan(lock, redis.call('HGETALL', lock.key), except, 16 * few)
  found.all = many
  return found
end

-- format_ms(ms) returns a time with all its digits.
local function format_ms(ms)
  return string.format('%.0f', ms)
end

-- The functions below write.

-- allow_writes(lock) lets a script write on a server out of memory, which refuses the first write
-- of a script unless it needs no memory. It is for a hold that exists already. No field has this
-- name.
local function allow_writes(lock)
  redis.call('HDEL', lock.key, '')
end

-- drop_recent(lock) removes recent if the hash has few fields.
local function drop_recent(lock)
  if lock.recent and redis.call('HLEN', lock.key) <= few then
    lock.recent = nil
    redis.call('HDEL', lock.key, 'recent', 'beyond')
  end
end

-- remove_dead(lock, dead) removes holds by their tokens; dead may be nil.
local function remove_dead(lock, dead)
  if dead and #dead > 0 then
    redis.call('HDEL', lock.key, unpack(dead))
    drop_recent(lock)
  end
end

-- set_expiry(lock, till) sets the key's expiry to till, or to needed if that is later.
local function set_expiry(lock, till)
  redis.call('PEXPIREAT', lock.key, format_ms(math.max(till, lock.needed or 0)))
end

-- write_lock(lock, key, fields, till) replaces what is left of the lock by a new one. It returns
-- nil, or the error if the user may not set an expiry: then it leaves no lock.
local function write_lock(lock, key, fields, till)
  if lock then
    redis.call('DEL', key)
  end
  redis.call('HSET', key, unpack(fields))
  local kept = redis.pcall('PEXPIREAT', key, format_ms(till))
  if kept ~= 1 then
    redis.call('DEL', key)
    return kept
  end
end

-- store_found(lock, found) stores what find_holder found.
local function store_found(lock, found)
  if found.known then
    return
  end
  redis.call('HSET', lock.key, 'last', found.token)
  if found.all then
    redis.call('HSET', lock.key, 'recent', table.concat(found.live), 'beyond', format_ms(found.rest))
  end
  if found.rough then
    if not lock.rough then
      redis.call('HSET', lock.key, 'rough', '0')
    end
  else
    redis.call('HDEL', lock.key, 'rough')
    set_expiry(lock, found.till)
  end
  remove_dead(lock, found.dead)
end

-- add_recent(lock, token, till) adds a hold to recent, unless it ends by beyond. If more than half
-- of a full recent are live, it is emptied and beyond covers them.
local function add_recent(lock, token, till)
  local at = lock.recent and string.find(lock.recent, token, 1, true)
  if not lock.recent or till <= lock.beyond or at and at % 22 == 1 then
    return
  end
  lock.recent = lock.recent .. token
  if #lock.recent > 22 * few then
    local found = scan_recent(lock)
    if #found.live > few / 2 then
      found.live, lock.beyond = {}, math.max(lock.beyond, found.till)
      redis.call('HSET', lock.key, 'beyond', format_ms(lock.beyond))
    end
    lock.recent = table.concat(found.live)
  end
  redis.call('HSET', lock.key, 'recent', lock.recent)
end

-- write_hold(lock, token, till, rest) writes a hold: its end, then rest. The key's expiry never
-- shrinks.
local function write_hold(lock, token, till, rest)
  local last, latest = last_end(lock), nil
  if lock.rough or broken then
    local left = redis.call('PTTL', lock.key)
    latest = left ~= -1 and till - lock.now >= left -- -1: somebody removed the expiry
  else
    latest = not last or till > last
  end
  redis.call('HSET', lock.key, token, format_ms(till) .. (rest or ''))
  add_recent(lock, token, till)
  if latest then
    redis.call('HSET', lock.key, 'last', token)
    redis.call('HDEL', lock.key, 'rough')
    lock.rough = nil
    set_expiry(lock, till)
  end
end

-- sweep(lock) is called for each new hold. Some calls remove a few dead ones. It makes a rough lock
-- exact again after so many calls that each costs O(1) on average.
local function sweep(lock)
  local n = redis.call('HLEN', lock.key)
  if n > few and not lock.recent then
    local left = redis.call('PTTL', lock.key)
    local found = {live = {}, rest = lock.now + left}
    if n <= 2 * few or left == -1 then
      found = scan(lock, redis.call('HGETALL', lock.key))
    end
    lock.recent, lock.beyond = table.concat(found.live), found.rest
    redis.call('HSET', lock.key, 'recent', lock.recent, 'beyond', format_ms(lock.beyond))
  else
    drop_recent(lock)
  end
  if lock.rough then
    local came = tonumber(lock.rough) + 1
    if 4 * came >= n then
      store_found(lock, find_holder(lock, true))
      return
    end
    redis.call('HSET', lock.key, 'rough', came)
  end
  if n % every == 0 then
    remove_dead(lock, scan_random(lock).dead)
  end
end

