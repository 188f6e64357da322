-- What the scripts share. A lock is a hash, as an RLock of Redisson keeps it: its only field is the
-- holder, <id>:<thread>, and the value of the field is how often the holder has acquired it. In a
-- field of ours (see newValue) the owner and the note may follow, each behind a "|". A "~" before a
-- field of ours says that it was released and that its MinHold lasts.

-- find_holder(key) returns the field and the value of the holder. It returns nil if nobody holds the
-- lock, and nil and a reply that says what the key holds if that is no lock of this kind.
local function find_holder(key)
  local fields = redis.pcall('HLEN', key)
  if type(fields) == 'table' then
    return nil, fields
  end
  if fields == 0 then
    return nil
  end
  if fields > 1 then
    local mode = redis.call('HEXISTS', key, 'mode') == 1
    return nil, {-2, mode and 'the lock of an RReadWriteLock of Redisson' or 'a hash that is no lock of Redisson'}
  end
  local field, count = redis.call('HKEYS', key)[1], redis.call('HVALS', key)[1]
  local rest = string.match(field, '^~?[^:|]+:%-?%d+(.?)')
  if rest ~= '' and rest ~= '|' or #count > 9 or not string.match(count, '^%d+$') then
    return nil, {-2, 'a hash that is no lock of Redisson'}
  end
  return field, tonumber(count)
end

-- shown(field) returns the field for a reply: '' if it is too long to be ours. It needs most.
local function shown(field)
  return #field <= most and field or ''
end

-- is_held(key, field) reports whether that holder has the lock. If the key has another type, it
-- returns nil and the error.
local function is_held(key, field)
  local held = redis.pcall('HEXISTS', key, field)
  if type(held) == 'table' then
    return nil, held
  end
  return held == 1
end

