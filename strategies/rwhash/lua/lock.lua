-- What the scripts have in common. A lock is a hash, with holds (see strategies/internal/hashholds) and
--   kind     'rwhash'
--   writer   the token of the hold that is exclusive; no other is live beside it
--   wwant    the intent of writers: until when it keeps new readers out, ms
--   wowner, wnote   who left it last
--   bar      since when it does, ms
--   rwant    the intent of readers: until when it keeps writers out in the readers' turn, ms
--   rowner, rnote   who left it last
--   turn     until when it is the readers' turn, ms
--   long     '1': that turn is a long one
--   heir     which writer has waited longest of those who came by, and is next: others are refused a free lock
--   hsince   since when it waits, ms
--   hwant    its intent: until when it is kept in mind, ms
--   howner, hnote   who it is
--   ample    when the readers get a long turn again, ms
-- The value of a hold is "<when it ends, ms> <number of its last conversion> <bytes of owner>:<owner><note>".
--
-- An attempt that is refused and goes on waiting leaves an intent. It lives for a while, so that it is gone soon after the
-- last attempt, and the refusal says to try again before. Nothing is counted.

local life = 1000 -- ms that an intent lives, or until its own stops waiting
local back = 400 -- ms after which a waiter tries again at the latest
local herd = 10 -- ms that a turn lasts from its first reader on: those who were woken with it get in too
local stragglers = 500 -- the same for a long turn: all who tried again in time get in, however far away they are

-- open(key, token) returns the lock, or nil where there is none, or nil and the reply that says what stands there instead.
-- own is the value of the hold that token names, writer and held its writer's token and end, gone and over those of a writer
-- whose lease ended.
local function open(key, token)
  local f = redis.pcall('HMGET', key, 'kind', 'last', 'rough', 'writer', 'wwant', 'rwant', 'bar', 'turn', 'ample', 'heir', 'hsince', 'hwant',
    'long', token or 'kind', 'recent', 'beyond')
  if f.err then
    return nil, f
  end
  if f[1] ~= 'rwhash' then
    if f[1] then
      return nil, {-2, 'the lock of another strategy'}
    end
    if redis.call('EXISTS', key) == 1 then
      return nil, {-2, 'a hash that is no lock'}
    end
    return nil
  end
  local function ms(i)
    return digits(f[i])
  end
  digits(f[3])
  local lock = {
    key = key, now = clock(), last = f[2], rough = f[3], long = f[13], own = token and f[14],
    wwant = ms(5), rwant = ms(6), bar = ms(7), turn = ms(8), ample = ms(9),
    heir = f[10], hsince = ms(11), hwant = ms(12),
  }
  recents(lock, f[15], f[16])
  lock.needed = math.max(lock.wwant, lock.rwant, lock.hwant)
  if f[4] then
    local till = f[4] == token and till_of(lock.own) or ends(lock, f[4])
    if till and till > lock.now then
      lock.writer, lock.held = f[4], till
    else
      lock.gone, lock.over = f[4], till
    end
  end
  return lock
end

-- value(number, owner, note) is what stands behind a hold's expiry.
local function value(number, owner, note)
  return ' ' .. number .. ' ' .. #owner .. ':' .. owner .. note
end

-- parts(value) returns the number of the last conversion, owner and note of a hold; value is of its form.
local function parts(value)
  local number, length, names = string.match(value, '^%d+ (%d+) (%d+):(.*)$')
  length = tonumber(length)
  return number, string.sub(names, 1, length), string.sub(names, length + 1)
end

-- because(lock, status, found) is the refusal that names a holder: {status, owner, note, left}.
local function because(lock, status, found)
  local _, owner, note = parts(redis.call('HGET', lock.key, found.token))
  return {status, shown(owner), shown(note), found.till - lock.now}
end

-- current(key) returns the fence counter, '0' where there is none or something else.
local function current(key)
  local last = key and read(key, 16)
  return type(last) == 'string' and #last <= 16 and string.match(last, '^%d+$') or '0'
end

-- rename(lock, from, to) puts the hold to in from's place. This writes.
local function rename(lock, from, to)
  redis.call('HDEL', lock.key, from)
  if lock.last == from then
    redis.call('HSET', lock.key, 'last', to)
  end
  if lock.writer == from then
    redis.call('HSET', lock.key, 'writer', to)
  end
end

-- awaited(lock) tells whether it is the turn of readers who wait.
local function awaited(lock)
  return lock.turn > lock.now and lock.rwant > lock.now
end

