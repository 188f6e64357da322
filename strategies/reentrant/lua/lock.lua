-- What the scripts have in common. A lock is a hash, with holds (see strategies/internal/hashholds) and
--   kind     'reentrant'
--   owner    who holds
--   note     the note, where one was given
--   fence    the fencing token of the tenure, where one was minted
-- The value of a hold is when it ends, and nothing else.

-- open(key) returns the lock, or nil where there is none, or nil and the reply that says what stands there instead.
local function open(key)
  local f = redis.pcall('HMGET', key, 'kind', 'owner', 'note', 'fence', 'last', 'rough', 'recent', 'beyond')
  if f.err then
    return nil, f
  end
  if f[1] == 'reentrant' and f[2] and f[5] then
    digits(f[4])
    digits(f[6])
    return recents({key = key, owner = f[2], note = f[3], fence = f[4], last = f[5], rough = f[6], now = clock()}, f[7], f[8])
  end
  if f[1] then
    return nil, {-2, 'the lock of another strategy'}
  end
  if redis.call('EXISTS', key) == 1 then
    return nil, {-2, 'a hash that is no lock'}
  end
end

