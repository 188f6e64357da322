-- reserved(id) returns the value that a release stores to reserve the lock for the waiter id.
local function reserved(id)
  return '~' .. id .. '~'
end

-- kept(value) returns the value that a release stores if the name of a hold is to stay taken.
local function kept(value)
  return '~' .. value
end

