-- strategy_of(key, kind) returns the strategy whose lock a key holds, by the type of the key and by
-- how its content begins:
--   'single', 'reentrant', 'rwhash', 'semaphore'
--   'string'   a string that single has not written
--   ''         no key, or an empty string
--   '!...'     what the key holds, which is no lock
--   '-...'     the error of a command that was refused
-- kind is what TYPE returns. Without it the type is found by the commands that the strategies use, so
-- that the ACL rules in SECURITY.md are enough.
local function strategy_of(key, kind)
  -- try(...) returns the reply of a command; nil, and the error unless it is WRONGTYPE.
  local function try(...)
    local reply = redis.pcall(...)
    local err = type(reply) == 'table' and reply.err
    if not err then
      return reply
    end
    return nil, not string.find(err, '^WRONGTYPE') and '-' .. err
  end
  local content, refused
  if not kind or kind == 'string' then
    content, refused = try('GETRANGE', key, 0, 23)
    if content and content ~= '' then
      local token, rest = string.match(content, '^~?([%w_-]+)(.?)') -- ~ in a minimum hold
      local ours = token and #token == 22 and (rest == '' or rest == '|')
      return ours and 'single' or 'string'
    elseif content or refused then
      return refused or ''
    end
  end
  if not kind or kind == 'zset' then
    content, refused = try('ZSCORE', key, 'permits')
    if content ~= nil or refused then
      return refused or content and 'semaphore' or '!a sorted set that is no semaphore'
    end
  end
  if not kind or kind == 'hash' then
    content, refused = try('HGET', key, 'kind')
    if content == 'reentrant' or content == 'rwhash' then
      return content
    elseif content ~= nil or refused then
      return refused or '!a hash that is no lock'
    end
  end
  return kind == 'none' and '' or '!a value of another type'
end
