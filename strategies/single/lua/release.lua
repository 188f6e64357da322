-- Releases a hold: compares, deletes and publishes. A PUBLISH that is refused changes nothing.
-- Needs read.
-- KEYS[1]  the lock
-- ARGV[1]  our value
-- ARGV[2]  the channel to publish on; empty: none
-- reply    1 released, 0 not ours
local held = read(KEYS[1], #ARGV[1])
if type(held) == 'table' then
  return held
end
if held ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
if ARGV[2] ~= '' then
  redis.pcall('PUBLISH', ARGV[2], '')
end
return 1
