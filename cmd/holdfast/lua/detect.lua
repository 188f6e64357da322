-- Finds the strategy of a lock. Needs strategy_of.
-- KEYS[1]  the lock
-- reply    what strategy_of returns
return strategy_of(KEYS[1])
