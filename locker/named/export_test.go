package named

// Kept returns how many names are in use, and how many lost locks wait for their Unlock.
func (s *Locks) Kept() (names, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.names), len(s.lost)
}

const MaxLost = maxLost
