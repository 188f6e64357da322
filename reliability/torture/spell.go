package main

import (
	"context"
	"sync"
	"time"
)

// spell is something that goes on until a time. Its zero value is over.
type spell struct {
	mu    sync.Mutex
	until time.Time
}

// cast makes it last for d from now, or as long as it would have lasted already.
func (s *spell) cast(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := time.Now().Add(d); until.After(s.until) {
		s.until = until
	}
}

func (s *spell) left() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.until)
}

func (s *spell) on() bool { return s.left() > 0 }

// pipe is a log's io.Writer. While it is full, writes block.
type pipe struct{ full spell }

// Write implements io.Writer.
func (p *pipe) Write(text []byte) (int, error) {
	for d := p.full.left(); d > 0; d = p.full.left() {
		pause(context.Background(), d)
	}
	return len(text), nil
}
