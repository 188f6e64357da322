package named

// Kept returns the number of names in use, and of lost locks waiting for their Unlock.
func (s *Locks) Kept() (names, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.names), len(s.lost)
}

const MaxLost = maxLost
