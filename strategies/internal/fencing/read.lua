-- read(key, most) returns a string up to its byte most + 1, so that one of more than most bytes shows as such and costs no
-- more; '' where it is empty or the key is not there; the error of another type.
local function read(key, most)
  local text = redis.pcall('GETRANGE', key, 0, most)
  if type(text) == 'table' and string.sub(text.err, 1, 9) ~= 'WRONGTYPE' then
    text = redis.pcall('GET', key) or '' -- the user may do no more
  end
  return text
end

