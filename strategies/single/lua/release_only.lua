-- The common case of release: the hold is ours, and nobody waits. It comes first because it needs
-- none of the functions below, which Lua makes in each call. KEYS, ARGV and reply are those of
-- release.
if KEYS[2] and not ARGV[6] and redis.pcall('PTTL', KEYS[2]) == -2
    and redis.pcall('GETRANGE', KEYS[1], 0, #ARGV[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  return 2
end

