-- Reads who holds. Needs current_fence, mint_fence, holds, lock.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter; nil: the token is not known
-- KEYS[3]  the queue of waiters; nil: their number is not known
-- ARGV[1]  'holds' to get the tokens too, by which the holds can be ended. If there is a fencing
--          token, the next one is minted, for nobody: readers that enter from now on have it
-- ARGV[2]  with 'holds': TTL of the counter, ms
-- reply    {1, owner, note, ms, holds, mode, fence}   the live hold that ends last: its owner, its
--                                                     note and the time until it ends, ms; the
--                                                     number of live holds, without those that a
--                                                     release left; 1 if they are shared, else 0;
--                                                     the last fencing token in decimal, '0' if
--                                                     there is none; then, if asked for, the tokens of
--                                                     all live holds, also of those that a release
--                                                     left
--          {0}                                        free
--          {-2, text}                                 the key holds something else: text
local function inspect()
  local lock, other = open(KEYS[1])
  if other then
    return other
  end
  local n, latest, names, tokens = 0, 0, nil, {}
  if lock then
    local fields = redis.call('HGETALL', KEYS[1])
    for i = 1, #fields, 2 do
      local till = #fields[i] == 22 and parse_end(fields[i + 1]) or 0
      if till > lock.now then
        n = n + (is_kept(fields[i]) and 0 or 1)
        tokens[#tokens + 1] = fields[i]
        if till > latest then
          latest, names = till, fields[i + 1]
        end
      end
    end
  end
  if broken then
    return unknown
  end
  if not names then
    return {0}
  end
  local _, owner, note = parse_value(names)
  local fence = current_fence(KEYS[2])
  local reply = {1, shown(owner), shown(note), latest - lock.now, n, lock.writer and 0 or 1, fence}
  for i = 1, ARGV[1] and #tokens or 0 do
    reply[#reply + 1] = tokens[i]
  end
  if ARGV[1] and fence ~= '0' then
    allow_writes(lock)
    mint_fence(KEYS[2], ARGV[2])
  end
  return reply
end
return add_waiters(inspect(), KEYS[3])
