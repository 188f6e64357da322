-- reserved(id) returns the value that a release stores to reserve the lock for the waiter id.
local function reserved(id)
  return '~' .. id .. '~'
end

