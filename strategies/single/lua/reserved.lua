-- reserved(id) returns the value that a release stores to reserve the lock for the waiter id.
local function reserved(id)
  return '~' .. id .. '~'
end

-- is_reserved(value, id) reports whether value reserves the lock for a waiter. All IDs are as long
-- as id.
local function is_reserved(value, id)
  return #value == #id + 2 and value == reserved(string.sub(value, 2, -2))
end

-- kept(value) returns what a release stores in place of value, a hold's, if the name is to stay
-- taken.
local function kept(value)
  return '~' .. value
end

