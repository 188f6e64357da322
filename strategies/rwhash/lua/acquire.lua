-- Acquires, or finds that an earlier send of the same acquire did. Needs next_fence, store_fence,
-- holds, lock, turns, the queue.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- KEYS[n]  the last one: the queue of waiters, if the caller has a place in it
-- ARGV[1]  the hold's token
-- ARGV[2]  TTL of the hold, ms
-- ARGV[3]  TTL of the counter, ms; '0' if the hold is not fenced
-- ARGV[4]  owner
-- ARGV[5]  note; may be empty
-- ARGV[6]  'exclusive' or 'shared'
-- ARGV[7]  the ID of the waiter; empty before its first refusal
-- ARGV[8]  how long the caller has waited, ms; -1: it does not wait
-- ARGV[9]  how much longer it waits at most, ms; empty: without end
-- ARGV[10] its place in the queue; 'all': it is woken with all of these; empty: it does not
--          wait
-- ARGV[11] its delivery (see the queue)
-- ARGV[12] the channel to wake waiters on; not used
-- ARGV[13] whether the order is strict; not used: the order of writers always is
-- ARGV[14] how long at a time waiting writers keep new readers out, ms
-- reply    {1, fence, 0}          acquired by this call
--          {2, fence, 0}          acquired by an earlier send of this call
--          {0, owner, note, left, again}
--                                 refused: the holder, what is left of its lease, ms (-1: it is a
--                                 waiting writer or reader without a lease), and the time until the
--                                 next attempt at the latest, ms; then 1 if that holder has
--                                 released and the name stays taken
--          {-1, text}             the counter holds something else: text
--          {-2, text}             the key holds something else: text
--          fence is a decimal string, '0' if the hold is not fenced
local counter = ARGV[3] ~= '0' and KEYS[2] or nil
local queue = KEYS[counter and 3 or 2]
local lock, other = open(KEYS[1], ARGV[1])
if other then
  return other
end
local again = lock and parse_end(lock.own) and not broken -- an earlier send made the hold
local shared, waits, bound = ARGV[6] == 'shared', ARGV[8] ~= '-1', tonumber(ARGV[14])

-- time_left(till) returns how long to wait for something that ends at till.
local function time_left(till)
  return waits and math.min(till - lock.now, back) or till - lock.now
end

-- time_of_heir() returns for how long a free lock is kept for the next writer, ms, or nil if that was
-- not woken. A woken one that lets the time pass is marked in the queue, and is the next no more.
local function time_of_heir()
  local score = queue and tonumber(redis.pcall('ZSCORE', queue, lock.heir) or nil)
  if not score or score > 0 then
    return nil
  end
  local now = now_us()
  local rest = math.ceil(time_of_woken - (now + score) / 1000)
  if rest <= 0 then
    mark(queue, lock.heir, now)
    lock.hwant = 0
  end
  return rest
end

-- refuse_by_intent(who, till) is the refusal that names a waiter: 'w', 'r' or 'h' (see lock.lua).
local function refuse_by_intent(who, till)
  local names = redis.call('HMGET', KEYS[1], who .. 'owner', who .. 'note')
  return {0, shown(names[1]), shown(names[2]), -1, time_left(till)}
end

local refusal, found, since, passed_over
if lock and not again then
  lock.life = math.min(life, tonumber(ARGV[9]) or life)
  since = lock.now - math.max(tonumber(ARGV[8]), 0)
  if lock.over and lock.rwant > lock.now and lock.over + bound > lock.now then
    lock.turn = lock.over + bound -- a writer expired, which begins the readers' turn
  end
  if shared then
    local till = math.min(lock.wwant, lock.bar + bound)
    if lock.writer then
      refusal = refuse_by(lock, 0, {token = lock.writer, till = lock.held})
      refusal[5] = time_left(lock.held)
      refusal[6] = is_kept(lock.writer) and 1 or nil
    elseif lock.bar <= lock.now and lock.now < till then -- a bar begins with the end of a turn
      refusal = refuse_by_intent('w', till)
    end
  else
    found = find_holder(lock, false)
    if found.token then
      refusal = refuse_by(lock, 0, found)
      refusal[5] = refusal[4]
      if not lock.writer or ARGV[7] ~= '' then -- else it leaves no intent, which would lapse
        refusal[5] = time_left(found.till)
      end
      refusal[6] = is_kept(found.token) and 1 or nil
    elseif readers_turn(lock) then
      refusal = refuse_by_intent('r', math.min(lock.turn, lock.rwant))
    elseif lock.hwant > lock.now and lock.heir ~= ARGV[7] and since >= lock.hsince then
      local rest = time_of_heir()
      if not rest or rest > 0 then
        refusal, passed_over = refuse_by_intent('h', lock.hwant), true
        refusal[5] = math.min(refusal[5], rest or refusal[5])
      end
    end
  end
end
if lock and shared and not again then
  last_end(lock)
end
if broken then
  return unknown
end
if refusal then
  if waits and lock.gone then
    start_readers_turn(lock, lock.over or 0, bound)
  end
  if waits and (shared or not lock.writer and not passed_over) then
    store_intent(lock, shared, ARGV[4], ARGV[5], bound)
  end
  local marked = waits and queue and is_marked(queue, ARGV[10], now_us())
  if waits and not shared and ARGV[7] ~= '' and not marked then
    claim_next(lock, ARGV[7], since, ARGV[4], ARGV[5])
  end
  if waits then
    local again = enqueue(queue, ARGV[10], ARGV[11], ARGV[8], ARGV[9], refusal[5])
    refusal[5] = marked and again or refusal[5]
  end
  if found and found.token then
    store_found(lock, found) -- last: it may end the key if the hold has expired meanwhile
  end
  return refusal
end

local fence, last = '0', nil
if counter and not again then
  fence, last = next_fence(counter)
  if not fence then
    return {-1, last}
  end
  if shared and last and tonumber(last) > 0 then
    fence = last
  end
end
if again then
  return {2, current_fence(counter), 0}
end
if counter then
  store_fence(counter, fence, last, ARGV[3])
end

if queue and ARGV[10] ~= 'all' then
  leave_place(queue, ARGV[10], '', '')
end
local hold = format_value('0', ARGV[4], ARGV[5])
if lock and shared then
  if lock.gone then
    start_readers_turn(lock, lock.over or 0, bound)
    redis.call('HDEL', KEYS[1], lock.gone)
  end
  reader_enters(lock, bound)
  write_hold(lock, ARGV[1], lock.now + tonumber(ARGV[2]), hold)
  sweep(lock)
  return {1, fence, 0}
end

local till = clock() + tonumber(ARGV[2])
local fields, kept = {'kind', 'rwhash', 'last', ARGV[1], ARGV[1], format_ms(till) .. hold}, till
if not shared then
  fields[7], fields[8] = 'writer', ARGV[1]
end

-- carry_over(needed, ...) keeps fields of the lock, which are needed until then.
local function carry_over(needed, ...)
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
    carry_over(lock.rwant, 'rwant', 'rowner', 'rnote')
  end
  if lock.ample > 0 then
    carry_over(0, 'ample')
  end
  if lock.hwant > lock.now and lock.heir ~= ARGV[7] then
    carry_over(lock.hwant, 'heir', 'hsince', 'hwant', 'howner', 'hnote')
  end
end
-- Dead holds and the intents of writers go.
return write_lock(lock, KEYS[1], fields, kept) or {1, fence, 0}
