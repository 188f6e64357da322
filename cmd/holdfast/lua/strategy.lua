-- forms are patterns of the strings of other libraries. The strings of redislock look like those of
-- single.
local hex4 = '%x%x%x%x'
local forms = {
  ['^' .. string.rep(hex4, 8) .. '$'] = 'redis-py or redlock',
  ['^' .. string.rep('[%w+/]', 22) .. '==$'] = 'redsync',
  ['^' .. hex4 .. hex4 .. string.rep('%-' .. hex4, 4) .. hex4 .. hex4 .. '$'] = 'Spring Integration',
  ['^ADDED:%d%d%d%d%-'] = 'ShedLock',
}

-- redisson are patterns of the field of a lock of Redisson: of its own, and of ours.
local redisson = {
  '^' .. hex4 .. hex4 .. string.rep('%-' .. hex4, 4) .. hex4 .. hex4 .. ':%d+$',
  '^~?' .. string.rep('[%w_-]', 22) .. ':1$',
  '^~?' .. string.rep('[%w_-]', 22) .. ':1|',
}

-- strategy_of(key, kind) returns the strategy whose lock a key holds, by the type of the key and by
-- how its content begins:
--   'single', 'reentrant', 'rwhash', 'redisson', 'semaphore'
--   'string'      a string that single has not written
--   'string ...'  the same, and the libraries that write such strings
--   ''            no key, or an empty string
--   '!...'        what the key holds, which is no lock
--   '-...'        the error of a command that was refused
-- kind is what TYPE returns. Without it the type is found by the commands that the strategies use, so
-- that the ACL rules in SECURITY.md are enough: that of redisson has no command for sorted sets.
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
    content, refused = try('GETRANGE', key, 0, 36)
    if content and content ~= '' then
      local token, rest = string.match(content, '^~?([%w_-]+)(.?)') -- ~ in a minimum hold
      if token and #token == 22 and (rest == '' or rest == '|') then
        return 'single'
      end
      for form, libraries in pairs(forms) do
        if string.find(content, form) then
          return 'string ' .. libraries
        end
      end
      return 'string'
    elseif content or refused then
      return refused or ''
    end
  end
  if not kind or kind == 'zset' then
    content, refused = try('ZSCORE', key, 'permits')
    if content ~= nil then
      return content and 'semaphore' or '!a sorted set that is no semaphore'
    end
  end
  if not kind or kind == 'hash' then
    local fields, denied = try('HLEN', key)
    if fields == 1 then
      content = try('HKEYS', key)
      if not content then
        return '!a hash that is a lock of redisson or none: the user may not look'
      end
      for _, form in ipairs(redisson) do
        if string.find(content[1], form) then
          return 'redisson'
        end
      end
      return '!a hash that is no lock'
    elseif fields then
      content, denied = try('HGET', key, 'kind')
      if content == 'reentrant' or content == 'rwhash' then
        return content
      elseif content ~= nil then
        content = try('HGET', key, 'mode')
        local theirs = content == 'read' or content == 'write'
        return theirs and '!the lock of an RReadWriteLock of Redisson' or '!a hash that is no lock'
      end
    end
    refused = refused or denied
  end
  return refused or kind == 'none' and '' or '!a value of another type'
end
