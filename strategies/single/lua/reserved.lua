-- reserved(id) returns the value that a release stores to reserve the lock for the waiter id.
local function reserved(id)
  return '~' .. id .. '~'
end

-- kept(value) returns what a release stores in place of value, a hold's, if the name is to stay
-- taken.
local function kept(value)
  return '~' .. value
end

