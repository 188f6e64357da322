-- Reads who holds. Needs holds, open.
-- KEYS[1]  the lock
-- reply    {1, owner, note, ms, holds, 0, fence}   the time until the last live hold ends, ms, and
--                                                  the number of live holds, 0 if the lock was
--                                                  released and the name stays taken; 0: exclusive;
--                                                  the fencing token of the tenure in decimal, '0'
--                                                  if there is none
--          {0}                                     free
--          {-2, text}                              the key holds something else: text
local lock, other = open(KEYS[1])
if other then
  return other
end
local n, latest = 0, 0
if lock then
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    local till = #fields[i] == 22 and parse_end(fields[i + 1]) or 0
    if till > lock.now then
      n, latest = n + 1, math.max(latest, till)
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
return {1, shown(lock.owner), shown(lock.note), latest - lock.now, n, 0, lock.fence or '0'}
