-- reserved(id) returns the value that a release stores for the waiter that the lock is kept for.
local function reserved(id)
  return '~' .. id .. '~'
end

