-- Reads who holds. Needs holds, open.
-- KEYS[1]  the lock
-- KEYS[3]  the queue of waiters; nil: their number is not known
-- ARGV[1]  'holds' to get the tokens too, by which the holds can be ended
-- reply    {1, owner, note, ms, holds, 0, fence}   the time until the last live hold ends, ms, and
--                                                  the number of live holds, 0 if the lock was
--                                                  released and the name stays taken; 0: exclusive;
--                                                  the fencing token of the tenure in decimal, '0'
--                                                  if there is none; then, if asked for, the
--                                                  tokens of the live holds, and the name of what
--                                                  keeps the name taken (see kept_name)
--          {0}                                     free
--          {-2, text}                              the key holds something else: text
local function inspect()
  local lock, other = open(KEYS[1])
  if other then
    return other
  end
  local n, latest, tokens = 0, 0, {}
  if lock then
    local fields = redis.call('HGETALL', KEYS[1])
    for i = 1, #fields, 2 do
      local till = #fields[i] == 22 and parse_end(fields[i + 1]) or 0
      if till > lock.now then
        n, latest = n + 1, math.max(latest, till)
        tokens[n] = fields[i]
      end
    end
  end
  if broken then
    return unknown
  end
  latest = math.max(latest, lock and lock.keep or 0)
  if n == 0 and not (lock and lock.keep > lock.now) then
    return {0}
  end
  local reply = {1, shown(lock.owner), shown(lock.note), latest - lock.now, n, 0, lock.fence or '0'}
  if ARGV[1] then
    if lock.keep > lock.now then
      tokens[n + 1] = kept_name(lock)
    end
    for _, token in ipairs(tokens) do
      reply[#reply + 1] = token
    end
  end
  return reply
end
return add_waiters(inspect(), KEYS[3])
