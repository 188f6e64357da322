-- What the scripts share. A lock is a hash, with holds (see strategies/internal/hashholds) and
--   kind     'rwhash'
--   writer   the token of the exclusive hold; no other is live beside it
--   bar      since when a waiting writer keeps new readers out, ms (see turns)
--   turn     until when it is the readers' turn, ms
--   long     '1': a reader has waited for so long that its next turn is a long one
-- The value of a hold is "<end, ms> <number of its last conversion> <bytes of
-- owner>:<owner><note>".
--
-- A release that leaves the name taken replaces the hold by one whose token no client has: that of
-- kept_token. Otherwise it is a hold like any other.
--

local longest_turn = 500 -- ms

-- parse_turn(digits, now) returns a time at which something of a turn begins or ends, ms. One that is
-- too far ahead was stored before the clock was set back: it is 0, and counts again once it is near,
-- for one more turn.
local function parse_turn(digits, now)
  local at = parse_digits(digits)
  return at <= now + longest_turn and at or 0
end

-- open(key, token) returns the lock. It returns nil if there is none, and nil and a reply that says
-- what the key holds if that is no lock of ours. own is the value of the hold of that token; writer
-- and held are the writer's token and end; gone is the token of a writer that has expired.
local function open(key, token)
  local f = redis.pcall('HMGET', key, 'kind', 'last', 'rough', 'writer', 'bar', 'turn', 'long', token or 'kind', 'recent', 'beyond')
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
  parse_digits(f[3])
  local now = clock()
  local lock = {
    key = key, now = now, last = f[2], rough = f[3], bar = parse_turn(f[5], now), turn = parse_turn(f[6], now), long = f[7],
    own = token and f[8],
  }
  set_recent(lock, f[9], f[10])
  lock.needed = lock.turn
  if f[4] then
    local till = f[4] == token and parse_end(lock.own) or hold_end(lock, f[4])
    if till and till > lock.now then
      lock.writer, lock.held = f[4], till
    else
      lock.gone = f[4]
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

