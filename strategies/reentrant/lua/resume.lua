-- Takes a hold over: replaces its token by a new one. It never shortens the lease. Needs
-- next_fence, store_fence, holds, open.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- ARGV[1]  the new token
-- ARGV[2]  TTL of the hold, ms
-- ARGV[3]  TTL of the counter, ms
-- ARGV[4]  the token to replace
-- ARGV[5]  owner; not used
-- ARGV[6]  the lock's note from now on; empty: unchanged
-- ARGV[7]  empty if only the note is to change: it is replaced even by an empty one; otherwise not
--          used
-- reply    {1, fence}   taken over by this call; if fenced, with a new fencing token
--          {2, fence}   taken over by an earlier send of this call
--          {0}          the hold is gone
--          {-1, text}   the counter holds something else: text
--          {-2, text}   the key holds something else: text
local lock, other = open(KEYS[1])
if other then
  return other.err and other or {0}
end
if lock and hold_end(lock, ARGV[1]) and not broken then
  return {2, KEYS[2] and lock.fence or '0'}
end
local till = lock and live_end(lock, ARGV[4])
if broken then
  return unknown
end
if not till then
  return {0}
end
local fence, last = '0', nil
if KEYS[2] then
  fence, last = next_fence(KEYS[2])
  if not fence then
    return {-1, last}
  end
  store_fence(KEYS[2], fence, last, ARGV[3])
end

write_hold(lock, ARGV[1], math.max(till, lock.now + tonumber(ARGV[2])))
if lock.last == ARGV[4] then
  redis.call('HSET', KEYS[1], 'last', ARGV[1])
end
redis.call('HDEL', KEYS[1], ARGV[4])
if KEYS[2] then
  redis.call('HSET', KEYS[1], 'fence', fence)
end
if ARGV[6] ~= '' then
  redis.call('HSET', KEYS[1], 'note', ARGV[6])
elseif ARGV[7] == '' then
  redis.call('HDEL', KEYS[1], 'note')
end
return {1, fence}
