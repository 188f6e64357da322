-- What the scripts share. A lock is a hash, with holds (see strategies/internal/hashholds) and
--   kind     'rwhash'
--   writer   the token of the exclusive hold; no other is live beside it
--   wwant    the writers' intent: until when it keeps new readers out, ms
--   wowner, wnote   who left it last
--   bar      since when it does, ms
--   rwant    the readers' intent: until when it keeps writers out in the readers' turn, ms
--   rowner, rnote   who left it last
--   turn     until when it is the readers' turn, ms
--   long     '1': that turn is a long one
--   heir     the ID of the next writer, the one that has waited longest: others are refused a free
--            lock
--   hsince   since when it waits, ms
--   hwant    its intent: until when it counts, ms
--   howner, hnote   who it is
--   ample    when the readers get a long turn again, ms
-- The value of a hold is "<end, ms> <number of its last conversion> <bytes of
-- owner>:<owner><note>".
--
-- A release that leaves the name taken replaces the hold by one whose token no client has: that of
-- kept_token. Otherwise it is a hold like any other.
--
-- An attempt that is refused and goes on waiting leaves an intent. Each attempt renews it; it
-- expires soon after the last one. The refusal says to try again before that. Nothing is counted.

local life = 1000 -- ms that an intent lives, unless its waiter stops before
local back = 400 -- ms after which a waiter tries again at the latest
local time_of_woken = 250 -- ms that the next writer has for its attempt once it is woken; less than back
local herd = 10 -- ms that a turn lasts from its first reader on, for those that were woken with it
local stragglers = 500 -- the same for a long turn, for readers far away

-- open(key, token) returns the lock. It returns nil if there is none, and nil and a reply that says
-- what the key holds if that is no lock of ours. own is the value of the hold of that token; writer
-- and held are the writer's token and end; gone and over are those of a writer that has expired.
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
    return parse_digits(f[i])
  end
  parse_digits(f[3])
  local lock = {
    key = key, now = clock(), last = f[2], rough = f[3], long = f[13], own = token and f[14],
    wwant = ms(5), rwant = ms(6), bar = ms(7), turn = ms(8), ample = ms(9),
    heir = f[10], hsince = ms(11), hwant = ms(12),
  }
  set_recent(lock, f[15], f[16])
  lock.needed = math.max(lock.wwant, lock.rwant, lock.hwant)
  if f[4] then
    local till = f[4] == token and parse_end(lock.own) or hold_end(lock, f[4])
    if till and till > lock.now then
      lock.writer, lock.held = f[4], till
    else
      lock.gone, lock.over = f[4], till
    end
  end
  return lock
end

-- format_value(number, owner, note) returns the value of a hold without its end.
local function format_value(number, owner, note)
  return ' ' .. number .. ' ' .. #owner .. ':' .. owner .. note
end

-- parse_value(value) returns the number of a hold's last conversion, its owner and its note. The
-- value must be of the right form.
local function parse_value(value)
  local number, length, names = string.match(value, '^%d+ (%d+) (%d+):(.*)$')
  length = tonumber(length)
  return number, string.sub(names, 1, length), string.sub(names, length + 1)
end

-- kept_token(token) returns the token of the hold that a release leaves in place of that of token,
-- so that the name stays taken.
local function kept_token(token)
  return '~' .. string.sub(token, 2)
end

-- is_kept(token) reports whether a release left the hold of that token.
local function is_kept(token)
  return string.sub(token, 1, 1) == '~'
end

-- refuse_by(lock, status, found) returns the refusal that names a holder: {status, owner, note,
-- left}.
local function refuse_by(lock, status, found)
  local _, owner, note = parse_value(redis.call('HGET', lock.key, found.token))
  return {status, shown(owner), shown(note), found.till - lock.now}
end

-- rename_hold(lock, from, to) removes the hold from, so that to can replace it. It writes.
local function rename_hold(lock, from, to)
  redis.call('HDEL', lock.key, from)
  if lock.last == from then
    redis.call('HSET', lock.key, 'last', to)
  end
  if lock.writer == from then
    redis.call('HSET', lock.key, 'writer', to)
  end
end

-- readers_turn(lock) reports whether it is the turn of waiting readers.
local function readers_turn(lock)
  return lock.turn > lock.now and lock.rwant > lock.now
end

