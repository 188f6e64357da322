-- Acquires, or finds that an earlier send of the same acquire did. Needs next_fence, count, holds, lock, turns.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter; absent: not fenced
-- ARGV[1]  the hold's token
-- ARGV[2]  TTL of the hold, ms
-- ARGV[3]  TTL of the counter, ms
-- ARGV[4]  owner
-- ARGV[5]  note; may be empty
-- ARGV[6]  'exclusive' or 'shared'
-- ARGV[7]  '1': who is refused waits, '0': does not
-- ARGV[8]  for how long at a time writers who wait keep new readers out, ms
-- reply    {1, fence, 0}          taken by this call
--          {2, fence, 0}          ours since an earlier call
--          {0, owner, note, ms}   refused: because of whom, and when to try again at the latest
--          {-1, text}             the counter holds something else: text
--          {-2, text}             the key holds something else: text
--          fence is a decimal string, '0' when not fenced
local lock, other = open(KEYS[1], ARGV[1])
if other then
  return other
end
if lock and lock.own then
  return {2, current(KEYS[2]), 0}
end
local shared, waits, bound = ARGV[6] == 'shared', ARGV[7] == '1', tonumber(ARGV[8])

-- left(till) is how long to wait for what ends at till.
local function left(till)
  return waits and math.min(till - lock.now, back) or till - lock.now
end

local function by_intent(who, till)
  local names = redis.call('HMGET', KEYS[1], who .. 'owner', who .. 'note')
  return {0, names[1] or '', names[2] or '', left(till)}
end

local refusal
if lock then
  if lock.over and lock.rwant > lock.now and lock.over + bound > lock.now then
    lock.turn = lock.over + bound -- a writer whose lease ended passed it on
  end
  if shared then
    local till = math.min(lock.wwant, lock.bar + bound)
    if lock.writer then
      refusal = because(lock, 0, {token = lock.writer, till = lock.held})
      refusal[4] = left(lock.held)
    elseif lock.turn <= lock.now and lock.bar <= lock.now and lock.now < till then
      refusal = by_intent('w', till)
    end
  else
    local found = holder(lock, false)
    if found.token then
      settle(lock, found)
      refusal = because(lock, 0, found)
      if not lock.writer then
        refusal[4] = left(found.till)
      end
    elseif awaited(lock) then
      refusal = by_intent('r', math.min(lock.turn, lock.rwant))
    end
  end
end
if refusal then
  if waits and (shared or not lock.writer) then
    if lock.gone then
      pass(lock, lock.over or 0, bound)
    end
    want(lock, shared, ARGV[4], ARGV[5], bound)
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
  count(KEYS[2], fence, last, ARGV[3])
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

local till, kept = clock() + tonumber(ARGV[2]), nil
if lock then
  if lock.rwant > lock.now then
    kept = redis.call('HMGET', KEYS[1], 'rowner', 'rnote')
  end
  redis.call('DEL', KEYS[1]) -- with what is left of dead holds, and the intents of writers
end
if shared then
  redis.call('HSET', KEYS[1], 'kind', 'rwhash', 'last', ARGV[1], ARGV[1], text(till) .. hold)
else
  redis.call('HSET', KEYS[1], 'kind', 'rwhash', 'last', ARGV[1], ARGV[1], text(till) .. hold, 'writer', ARGV[1])
end
if kept then
  redis.call('HSET', KEYS[1], 'rwant', text(lock.rwant), 'rowner', kept[1] or '', 'rnote', kept[2] or '', 'ample', text(lock.ample))
  till = math.max(till, lock.rwant)
end
redis.call('PEXPIREAT', KEYS[1], text(till))
return {1, fence, 0}
