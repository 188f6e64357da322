-- The order of readers and writers. Needs holds, lock. These functions write.

-- start_readers_turn(lock, from, bound) begins the turn of the waiting readers, if there are any,
-- when a writer ends at from.
local function start_readers_turn(lock, from, bound)
  lock.wwant, lock.bar, lock.turn, lock.long = 0, 0, 0, nil
  if lock.rwant > lock.now then
    lock.turn = from + bound
  end
  redis.call('HDEL', lock.key, 'writer', 'wwant', 'wowner', 'wnote', 'bar', 'turn', 'long')
  if lock.turn > 0 then
    redis.call('HSET', lock.key, 'turn', format_ms(lock.turn))
  end
  lock.needed = math.max(lock.rwant, lock.hwant)
end

-- reader_enters(lock, bound) is called for a reader that gets in. The first one of a turn ends it
-- soon; once in a bound, later, for readers that learn of the turn late.
local function reader_enters(lock, bound)
  if lock.rwant == 0 or readers_turn(lock) and lock.long then
    return
  end
  if not readers_turn(lock) then
    redis.call('HDEL', lock.key, 'rwant', 'rowner', 'rnote', 'turn', 'long')
    if lock.bar > lock.now then
      redis.call('HSET', lock.key, 'bar', format_ms(lock.now))
    end
    return
  end
  local long = lock.ample > 0 and lock.ample <= lock.now
  local turn = lock.now + (long and math.min(bound, stragglers) or herd)
  redis.call('HSET', lock.key, 'turn', format_ms(turn))
  if lock.bar > turn then
    redis.call('HSET', lock.key, 'bar', format_ms(turn))
  end
  if long or lock.ample == 0 then
    redis.call('HSET', lock.key, 'ample', format_ms(turn + bound))
  end
  if long then
    redis.call('HSET', lock.key, 'rwant', format_ms(turn), 'long', '1')
  else
    redis.call('HDEL', lock.key, 'rwant', 'rowner', 'rnote')
  end
end

-- keep_key(lock, till) makes the key live at least until then. It reads the clock again: the script
-- may have taken long.
local function keep_key(lock, till)
  lock.needed = math.max(lock.needed, till)
  if redis.call('PTTL', lock.key) < till - clock() then
    redis.call('PEXPIREAT', lock.key, format_ms(till))
  end
end

-- claim_next(lock, id, since, owner, note) is called for a writer that was refused and waits. The
-- one that has waited longest is next.
local function claim_next(lock, id, since, owner, note)
  if lock.hwant > lock.now and lock.heir ~= id and since >= lock.hsince then
    return
  end
  local till = lock.now + lock.life
  redis.call('HSET', lock.key, 'heir', id, 'hsince', format_ms(since), 'hwant', format_ms(till), 'howner', owner, 'hnote', note)
  keep_key(lock, till)
end

-- store_intent(lock, shared, owner, note, bound) stores the intent of a waiter that was refused.
local function store_intent(lock, shared, owner, note, bound)
  local till = lock.now + lock.life
  if shared then
    redis.call('HSET', lock.key, 'rwant', format_ms(till), 'rowner', owner, 'rnote', note)
  else
    redis.call('HSET', lock.key, 'wwant', format_ms(till), 'wowner', owner, 'wnote', note)
    if lock.bar == 0 or lock.bar + 2 * bound <= lock.now then
      redis.call('HSET', lock.key, 'bar', format_ms(math.max(lock.turn, lock.now)))
    end
  end
  keep_key(lock, till)
end

