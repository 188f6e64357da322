package redistest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestServerAnswers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	if got := s.MustCommand(t, "SET", "k", "v", "PX", 60_000); got != "OK" {
		t.Errorf("SET: %v", got)
	}
	if ttl := s.MustCommand(t, "PTTL", "k").(int64); ttl <= 0 || ttl > 60_000 {
		t.Errorf("PTTL: %d", ttl)
	}
	_, err := s.Command("NOSUCH")
	var se redistest.ServerError
	if !errors.As(err, &se) || !strings.HasPrefix(string(se), "ERR unknown command") {
		t.Errorf("an unknown command: %v", err)
	}
}
