-- Who comes when. Needs holds, lock. This writes.

-- pass(lock, bound) begins the turn of the readers who wait, if there are any, when a writer ends at from.
local function pass(lock, from, bound)
  lock.wwant, lock.bar, lock.turn, lock.long = 0, 0, 0, nil
  if lock.rwant > lock.now then
    lock.turn = from + bound
  end
  redis.call('HDEL', lock.key, 'writer', 'wwant', 'wowner', 'wnote', 'bar', 'turn', 'long')
  if lock.turn > 0 then
    redis.call('HSET', lock.key, 'turn', text(lock.turn))
  end
  lock.needed = math.max(lock.rwant, lock.hwant)
end

-- enter(lock, bound) is for a reader who gets in. The first one in a turn ends it soon; once in a bound, later, so that
-- those have their turn too who hear of it late.
local function enter(lock, bound)
  if lock.rwant == 0 or awaited(lock) and lock.long then
    return
  end
  if not awaited(lock) then
    redis.call('HDEL', lock.key, 'rwant', 'rowner', 'rnote', 'turn', 'long')
    if lock.bar > lock.now then
      redis.call('HSET', lock.key, 'bar', text(lock.now))
    end
    return
  end
  local long = lock.ample > 0 and lock.ample <= lock.now
  local turn = lock.now + (long and math.min(bound, stragglers) or herd)
  redis.call('HSET', lock.key, 'turn', text(turn))
  if lock.bar > turn then
    redis.call('HSET', lock.key, 'bar', text(turn))
  end
  if long or lock.ample == 0 then
    redis.call('HSET', lock.key, 'ample', text(turn + bound))
  end
  if long then
    redis.call('HSET', lock.key, 'rwant', text(turn), 'long', '1')
  else
    redis.call('HDEL', lock.key, 'rwant', 'rowner', 'rnote')
  end
end

-- outlast(lock, till) makes the key live until then at least. It looks at the clock again: the script may have taken long.
local function outlast(lock, till)
  lock.needed = math.max(lock.needed, till)
  if redis.call('PTTL', lock.key) < till - clock() then
    redis.call('PEXPIREAT', lock.key, text(till))
  end
end

-- claim(lock, id, since, owner, note) is for a writer who was refused and waits: the one that has waited longest is next.
local function claim(lock, id, since, owner, note)
  if lock.hwant > lock.now and lock.heir ~= id and since >= lock.hsince then
    return
  end
  local till = lock.now + lock.life
  redis.call('HSET', lock.key, 'heir', id, 'hsince', text(since), 'hwant', text(till), 'howner', owner, 'hnote', note)
  outlast(lock, till)
end

-- want(lock, shared, owner, note, bound) leaves the intent of one who was refused and waits.
local function want(lock, shared, owner, note, bound)
  local till = lock.now + lock.life
  if shared then
    redis.call('HSET', lock.key, 'rwant', text(till), 'rowner', owner, 'rnote', note)
  else
    redis.call('HSET', lock.key, 'wwant', text(till), 'wowner', owner, 'wnote', note)
    if lock.bar == 0 or lock.bar + 2 * bound <= lock.now then
      redis.call('HSET', lock.key, 'bar', text(math.max(lock.turn, lock.now)))
    end
  end
  outlast(lock, till)
end

