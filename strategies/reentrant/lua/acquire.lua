-- Acquires, acquires again for the same owner, or finds that an earlier send of the same acquire
-- did. Needs next_fence, store_fence, holds, open.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- ARGV[1]  the hold's token
-- ARGV[2]  TTL of the hold, ms
-- ARGV[3]  TTL of the counter, ms
-- ARGV[4]  owner
-- ARGV[5]  note; may be empty
-- reply    {1, fence}             acquired by this call
--          {2, fence}             acquired by an earlier send of this call
--          {0, owner, note, ms}   held: by whom, and until its last hold ends
--          {-1, text}             the counter holds something else: text
--          {-2, text}             the key holds something else: text
--          fence is a decimal string, '0' if the hold is not fenced
local lock, other = open(KEYS[1])
if other then
  return other
end
local found
if lock then
  local theirs = lock.owner ~= ARGV[4]
  found = find_holder(lock, theirs)
  if broken or hold_end(lock, ARGV[1]) and broken then
    return unknown
  end
  if theirs and found.token then
    store_found(lock, found)
    return {0, shown(lock.owner), shown(lock.note), found.till - lock.now}
  end
end
local tenure = found and found.token -- the owner holds already
if tenure and hold_end(lock, ARGV[1]) then
  return {2, KEYS[2] and lock.fence or '0'}
end
local fence, last = '0', nil
if KEYS[2] then
  fence, last = next_fence(KEYS[2])
  if not fence then
    return {-1, last}
  end
  fence = tenure and lock.fence or fence
  store_fence(KEYS[2], fence, last, ARGV[3])
end

if tenure then
  write_hold(lock, ARGV[1], lock.now + tonumber(ARGV[2]))
  if KEYS[2] and not lock.fence then
    redis.call('HSET', KEYS[1], 'fence', fence)
  end
  sweep(lock)
  return {1, fence}
end

local till = clock() + tonumber(ARGV[2])
local fields = {'kind', 'reentrant', 'owner', ARGV[4], 'last', ARGV[1], ARGV[1], format_ms(till)}
if ARGV[5] ~= '' then
  fields[#fields + 1] = 'note'
  fields[#fields + 1] = ARGV[5]
end
if KEYS[2] then
  fields[#fields + 1] = 'fence'
  fields[#fields + 1] = fence
end
return write_lock(lock, KEYS[1], fields, till) or {1, fence}
