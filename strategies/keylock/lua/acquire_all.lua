-- Acquires several locks, or none: it checks all of them before it writes any. Needs
-- attempt(KEYS, ARGV), which makes the checks of acquire for one lock. attempt returns a reply if
-- the lock cannot be acquired, else nil and a function that acquires it and returns the reply.
-- KEYS     those of acquire, of one lock after another
-- ARGV[1]  how many arguments acquire has
-- ARGV[n]  for each lock: how many keys it has; then its arguments
-- reply    {0, n, ...}  all are acquired; for each lock the length of acquire's reply, and that reply
--          {i, ...}     lock i, from 1, cannot be acquired: acquire's reply
--          {i, text}    the key of lock i has another type: the error
local most_args, key, arg = tonumber(ARGV[1]), 1, 2
local acquires = {}
while arg <= #ARGV do
  local keys = tonumber(ARGV[arg])
  local failed, acquire = attempt({unpack(KEYS, key, key + keys - 1)}, {unpack(ARGV, arg + 1, arg + most_args)})
  if failed and failed.err then
    return string.sub(failed.err, 1, 9) == 'WRONGTYPE' and {#acquires + 1, failed.err} or failed
  end
  if failed then
    table.insert(failed, 1, #acquires + 1)
    return failed
  end
  acquires[#acquires + 1] = acquire
  key, arg = key + keys, arg + 1 + most_args
end
local replies = {0}
for _, acquire in ipairs(acquires) do
  local reply = acquire()
  if reply.err then
    return reply
  end
  replies[#replies + 1] = #reply
  for _, item in ipairs(reply) do
    replies[#replies + 1] = item
  end
end
return replies
