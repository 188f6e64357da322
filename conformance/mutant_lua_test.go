package conformance

// The scripts of the sound algorithms and of the mutants. Each has
//
// 	KEYS[1]  the lock
// 	KEYS[2]  the fence counter
// 	ARGV[1]  token
// 	ARGV[2]  TTL, ms
// 	ARGV[3]  "exclusive" or "shared"
// 	ARGV[4]  owner, or ""
// 	ARGV[5]  "true": mint a fencing token
// 	ARGV[6]  the channel of releases
// 	ARGV[7]  of a release: how long the name stays taken, ms
//
// acquire replies {1, fence}: taken now; {2, fence}: by an earlier send; {0, ms, value}: held, with
// its PTTL and value. renew and release reply 1, or 0 if the hold is gone.

const luaMint = `
local function mint(next)
  if ARGV[5] ~= 'true' then return '0' end
  local last = tonumber(redis.call('GET', KEYS[2]) or '0')
  local fence = string.format('%.0f', next(last))
  redis.call('SET', KEYS[2], fence, 'PX', 86400000 + ARGV[2])
  return fence
end
local function by_clock(last)
  local time = redis.call('TIME')
  return math.max(last + 1, time[1] * 1000000 + time[2])
end
local function by_count(last) return last + 1 end
`

// One key, a string: the token.
const (
	luaStringAcquire = luaMint + `
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then return {2, redis.call('GET', KEYS[2]) or '0'} end
if held then return {0, redis.call('PTTL', KEYS[1]), held} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, mint(by_clock)}`

	luaStringRenew = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
for i = 1, 2 do
  if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
end
return 1`

	luaStringRelease = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[7] ~= '0' then
  redis.call('SET', KEYS[1], '~' .. ARGV[1], 'PX', ARGV[7])
else
  redis.call('DEL', KEYS[1])
end
redis.call('PUBLISH', ARGV[6], '')
return 1`
)

// A hash with a field per hold: mode, expiry by the server's clock in µs, owner.
const (
	luaFields = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local mine, writers, readers, last = nil, false, false, 0
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local mode, till, owner = string.match(all[i + 1], '^(%a+)|(%d+)|(.*)$')
  till = tonumber(till)
  if till <= now then
    redis.call('HDEL', KEYS[1], all[i])
  else
    if all[i] == ARGV[1] then
      mine = till
    end
    last = math.max(last, till)
    if ARGV[4] == '' or owner ~= ARGV[4] then
      if mode == 'exclusive' then writers = true else readers = true end
    end
  end
end
local function put(till)
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3] .. '|' .. string.format('%.0f', till) .. '|' .. ARGV[4])
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil((math.max(last, till) - now) / 1000)))
end
`

	luaFieldsAcquire = luaMint + luaFields + `
if mine then return {2, redis.call('GET', KEYS[2]) or '0'} end
if writers or readers and ARGV[3] == 'exclusive' then return {0, math.ceil((last - now) / 1000)} end
put(now + ARGV[2] * 1000)
return {1, mint(by_clock)}`

	luaFieldsRenew = luaFields + `
if not mine then return 0 end
put(math.max(mine, now + ARGV[2] * 1000))
return 1`

	luaFieldsRelease = luaFields + `
if not mine then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('PUBLISH', ARGV[6], '')
return 1`
)

// The flawed scripts of the mutants, and parts of scripts.
const (
	luaSetNX  = `local set = redis.call('SETNX', KEYS[1], ARGV[1]) if set == 1 then return {1, '0'} end return {0, redis.call('PTTL', KEYS[1])}`
	luaExpire = `return redis.call('PEXPIRE', KEYS[1], ARGV[2])`
	luaDelete = `redis.call('PUBLISH', ARGV[6], '') return redis.call('DEL', KEYS[1])`
	luaGetSet = `return redis.call('GETSET', KEYS[1], ARGV[1])`
	luaRevive = `redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1`

	// A key for the readers and a key for the writer.
	luaTwoKeysAcquire = `
local read, write = '{' .. KEYS[1] .. '}:read', KEYS[1]
if redis.call('EXISTS', write) == 1 then return {0, redis.call('PTTL', write)} end
if ARGV[3] == 'exclusive' then
  if redis.call('EXISTS', read) == 1 then return {0, redis.call('PTTL', read)} end
  redis.call('SET', write, ARGV[1], 'PX', ARGV[2])
else
  redis.call('SET', read, 'readers', 'PX', ARGV[2])
end
return {1, '0'}`
	luaTwoKeysRenew = `
local key = KEYS[1]
if ARGV[3] == 'shared' then key = '{' .. key .. '}:read' end
return redis.call('PEXPIRE', key, ARGV[2])`
	luaTwoKeysRelease = `
local key = KEYS[1]
if ARGV[3] == 'shared' then key = '{' .. key .. '}:read' end
return redis.call('DEL', key)`

	// An owner and how often it has entered.
	luaCounterAcquire = `
local owner = redis.call('HGET', KEYS[1], 'owner')
local me = ARGV[4]
if me == '' then me = ARGV[1] end
if owner and owner ~= me then return {0, redis.call('PTTL', KEYS[1])} end
redis.call('HSET', KEYS[1], 'owner', me)
redis.call('HINCRBY', KEYS[1], 'count', 1)
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {1, '0'}`
	luaCounterRenew = `
local me = ARGV[4]
if me == '' then me = ARGV[1] end
if redis.call('HGET', KEYS[1], 'owner') ~= me then return 0 end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1`
	luaCounterRelease = `
local me = ARGV[4]
if me == '' then me = ARGV[1] end
if redis.call('HGET', KEYS[1], 'owner') ~= me then return 0 end
if redis.call('HINCRBY', KEYS[1], 'count', -1) <= 0 then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[6], '')
end
return 1`
)
