package history

import "sync"

// Store is a fenced store guarded by a lock. For each name it rejects writes with a lower fencing
// token than the highest seen.
type Store struct {
	mu      sync.Mutex
	highest map[string]int64
}

// Accept reports whether a write is accepted. It never fails.
func (s *Store) Accept(name string, fence int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fence < s.highest[name] {
		return false, nil
	}
	if s.highest == nil {
		s.highest = map[string]int64{}
	}
	s.highest[name] = fence
	return true, nil
}
