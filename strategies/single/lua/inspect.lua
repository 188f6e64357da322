-- Reads what is stored. Needs read, most.
-- KEYS[1]  the lock
-- reply    {value, ms}: what is stored or nil, and its PTTL; '' for what is too long to be ours
local held = read(KEYS[1], most)
if type(held) == 'table' then
  return held
end
local left = redis.call('PTTL', KEYS[1])
return {left ~= -2 and (#held > most and '' or held), left}
