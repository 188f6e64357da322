-- What the scripts share. A lock is a hash, with holds (see strategies/internal/hashholds) and
--   kind     'reentrant'
--   owner    who holds
--   note     the note, if one was given
--   fence    the fencing token of the tenure, if one was minted
--   keep     the time until which the name stays taken without a hold, ms, if a release set it
-- The value of a hold is its end, and nothing else.

-- kept_name(lock) names what keeps the name taken without a hold. No token begins like it.
local function kept_name(lock)
  return '~' .. string.format('%.0f', lock.keep)
end

-- open(key) returns the lock. It returns nil if there is none, and nil and a reply that says what
-- the key holds if that is no lock of ours.
local function open(key)
  local f = redis.pcall('HMGET', key, 'kind', 'owner', 'note', 'fence', 'last', 'rough', 'recent', 'beyond', 'keep')
  if f.err then
    return nil, f
  end
  if f[1] == 'reentrant' and f[2] and f[5] then
    parse_digits(f[4])
    parse_digits(f[6])
    local lock = {key = key, owner = f[2], note = f[3], fence = f[4], last = f[5], rough = f[6], now = clock(), keep = parse_digits(f[9])}
    lock.needed = lock.keep
    return set_recent(lock, f[7], f[8])
  end
  if f[1] then
    return nil, {-2, 'the lock of another strategy'}
  end
  if redis.call('EXISTS', key) == 1 then
    return nil, {-2, 'a hash that is no lock'}
  end
end

