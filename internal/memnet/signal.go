package memnet

// signal wakes all goroutines that wait for a change. The mutex of the changed value guards it.
type signal struct{ ch chan struct{} }

// next returns a channel, closed by the next fire.
func (s *signal) next() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
