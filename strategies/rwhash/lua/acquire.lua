-- Acquires, or finds that an earlier send of the same acquire did. Needs next_fence, store_fence, holds, lock, turns.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter; absent: not fenced
-- ARGV[1]  the hold's token
-- ARGV[2]  TTL of the hold, ms
-- ARGV[3]  TTL of the counter, ms
-- ARGV[4]  owner
-- ARGV[5]  note; may be empty
-- ARGV[6]  'exclusive' or 'shared'
-- ARGV[7]  for how long the caller has waited, ms; -1: it does not wait
-- ARGV[8]  names the one who waits; empty before its first refusal
-- ARGV[9]  for how long more it waits at most, ms; empty: without end
-- ARGV[10] for how long at a time writers who wait keep new readers out, ms
-- reply    {1, fence, 0}          taken by this call
--          {2, fence, 0}          ours since an earlier call
--          {0, owner, note, left, again}
--                                 refused: the holder, what is left of its lease, ms (-1: it is a
--                                 waiting writer or reader without a lease), and the latest next
--                                 attempt, ms
--          {-1, text}             the counter holds something else: text
--          {-2, text}             the key holds something else: text
--          fence is a decimal string, '0' when not fenced
local lock, other = open(KEYS[1], ARGV[1])
if other then
  return other
end
if lock and till_of(lock.own) and not broken then
  return {2, current(KEYS[2]), 0}
end
local shared, waits, bound = ARGV[6] == 'shared', ARGV[7] ~= '-1', tonumber(ARGV[10])

-- left(till) is how long to wait for what ends at till.
local function left(till)
  return waits and math.min(till - lock.now, back) or till - lock.now
end

local function by_intent(who, till)
  local names = redis.call('HMGET', KEYS[1], who .. 'owner', who .. 'note')
  return {0, shown(names[1]), shown(names[2]), -1, left(till)}
end

local refusal, found, since, passed_over
if lock then
  lock.life = math.min(life, tonumber(ARGV[9]) or life)
  since = lock.now - math.max(tonumber(ARGV[7]), 0)
  if lock.over and lock.rwant > lock.now and lock.over + bound > lock.now then
    lock.turn = lock.over + bound -- a writer whose lease ended passed it on
  end
  if shared then
    local till = math.min(lock.wwant, lock.bar + bound)
    if lock.writer then
      refusal = because(lock, 0, {token = lock.writer, till = lock.held})
      refusal[5] = left(lock.held)
    elseif lock.bar <= lock.now and lock.now < till then -- a bar begins with the end of a turn
      refusal = by_intent('w', till)
    end
  else
    found = holder(lock, false)
    if found.token then
      refusal = because(lock, 0, found)
      refusal[5] = refusal[4]
      if not lock.writer or ARGV[8] ~= '' then -- else it leaves nothing that lapses
        refusal[5] = left(found.till)
      end
    elseif awaited(lock) then
      refusal = by_intent('r', math.min(lock.turn, lock.rwant))
    elseif lock.hwant > lock.now and lock.heir ~= ARGV[8] and since >= lock.hsince then
      refusal, passed_over = by_intent('h', lock.hwant), true
    end
  end
end
if lock and shared then
  last_end(lock)
end
if broken then
  return unknown
end
if refusal then
  if waits and lock.gone then
    pass(lock, lock.over or 0, bound)
  end
  if waits and (shared or not lock.writer and not passed_over) then
    want(lock, shared, ARGV[4], ARGV[5], bound)
  end
  if waits and not shared and ARGV[8] ~= '' then
    claim(lock, ARGV[8], since, ARGV[4], ARGV[5])
  end
  if found and found.token then
    settle(lock, found) -- last: it may end the key, where the hold has ended meanwhile
  end
  return refusal
end

local fence, last = '0', nil
if KEYS[2] then
  fence, last = next_fence(KEYS[2])
  if not fence then
    return {-1, last}
  end
  if shared and last and tonumber(last) > 0 then
    fence = last
  end
  store_fence(KEYS[2], fence, last, ARGV[3])
end

local hold = value('0', ARGV[4], ARGV[5])
if lock and shared then
  if lock.gone then
    pass(lock, lock.over or 0, bound)
    redis.call('HDEL', KEYS[1], lock.gone)
  end
  enter(lock, bound)
  keep(lock, ARGV[1], lock.now + tonumber(ARGV[2]), hold)
  sweep(lock)
  return {1, fence, 0}
end

local till = clock() + tonumber(ARGV[2])
local fields, kept = {'kind', 'rwhash', 'last', ARGV[1], ARGV[1], text(till) .. hold}, till
if not shared then
  fields[7], fields[8] = 'writer', ARGV[1]
end

-- carry(needed, ...) keeps fields of the lock that are needed until then.
local function carry(needed, ...)
  local values = redis.call('HMGET', KEYS[1], ...)
  for i = 1, #values do
    if values[i] then
      fields[#fields + 1] = select(i, ...)
      fields[#fields + 1] = values[i]
    end
  end
  kept = math.max(kept, needed)
end

if lock then
  if lock.rwant > lock.now then
    carry(lock.rwant, 'rwant', 'rowner', 'rnote')
  end
  if lock.ample > 0 then
    carry(0, 'ample')
  end
  if lock.hwant > lock.now and lock.heir ~= ARGV[8] then
    carry(lock.hwant, 'heir', 'hsince', 'hwant', 'howner', 'hnote')
  end
end
-- Dead holds and the intents of writers go.
return begin(lock, KEYS[1], fields, kept) or {1, fence, 0}
