package named

// Kept returns the number of names in use, and of lost locks waiting for their Unlock.
func (m *Mutex) Kept() (names, lost int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.names), len(m.lost)
}

const MaxLost = maxLost
