-- read(key, most) returns the first most + 1 bytes of a string, so that a longer one is recognized
-- and is not read whole; '' if it is empty or the key does not exist; the error if the key has
-- another type. A user who may not run GETRANGE but GET reads the string whole.
local function read(key, most)
  local text = redis.pcall('GETRANGE', key, 0, most)
  if type(text) == 'table' and string.sub(text.err, 1, 9) ~= 'WRONGTYPE' then
    text = redis.pcall('GET', key) or '' -- the user may do no more
  end
  return text
end

-- current_fence(key) returns the fence counter in decimal; '0' if there is none, or if the key
-- holds something else.
local function current_fence(key)
  local last = key and read(key, 16)
  return type(last) == 'string' and #last <= 16 and string.match(last, '^%d+$') or '0'
end

