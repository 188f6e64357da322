package history

import "sync"

// Store is what a lock guards: for each name it accepts only writes whose fencing token is not
// below the highest that it saw.
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
