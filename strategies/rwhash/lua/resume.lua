-- Takes a hold over: replaces its token by a new one. It never shortens the lease. Needs
-- next_fence, store_fence, holds, lock.
-- KEYS[1]  the lock
-- KEYS[2]  the fence counter, if the hold is fenced
-- ARGV[1]  the new token
-- ARGV[2]  TTL of the hold, ms
-- ARGV[3]  TTL of the counter, ms
-- ARGV[4]  the token to replace
-- ARGV[5]  owner; not used
-- ARGV[6]  the hold's note from now on; empty: unchanged
-- ARGV[7]  'exclusive' or 'shared', as the handle says; empty if only the note is to change: it is
--          replaced even by an empty one. What follows is not used
-- reply    {1, fence, number}   taken over by this call; if fenced, with a new fencing token for a
--                               writer, that of the last writer for a reader; the number is that of
--                               the hold's last conversion
--          {2, fence, number}   taken over by an earlier send of this call
--          {0}                  the hold is gone, or now of the other mode
--          {-1, text}           the counter holds something else: text
--          {-2, text}           the key holds something else: text
local lock, other = open(KEYS[1], ARGV[1])
if other then
  return other.err and other or {0}
end
if lock and parse_end(lock.own) and not broken then
  local number = parse_value(lock.own)
  return {2, current_fence(KEYS[2]), tonumber(number)}
end
local old = lock and redis.call('HGET', KEYS[1], ARGV[4])
local till = parse_end(old)
local shared, noting = ARGV[7] == 'shared', ARGV[7] == ''
if broken then
  return unknown
end
if not till or till <= lock.now or not noting and (lock.writer == ARGV[4]) == shared then
  return {0}
end
local number, owner, note = parse_value(old)
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

if ARGV[6] ~= '' or noting then
  note = ARGV[6]
end
write_hold(lock, ARGV[1], math.max(till, lock.now + tonumber(ARGV[2])), format_value(number, owner, note))
rename_hold(lock, ARGV[4], ARGV[1])
return {1, fence, tonumber(number)}
