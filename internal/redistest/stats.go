package redistest

import (
	"fmt"
	"strings"
)

// Processed returns how many commands the server has executed, without INFO and the clients' own
// PINGs.
func (s *Server) Processed(tb TB) int {
	tb.Helper()
	info, _ := s.MustCommand(tb, "INFO", "all").(string)
	total, err := processed(info)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return total
}

// processed reads the reply to INFO all.
func processed(info string) (int, error) {
	total, found := 0, false
	for line := range strings.Lines(info) {
		var n int
		if _, err := fmt.Sscanf(line, "total_commands_processed:%d", &n); err == nil {
			total, found = total+n, true
		}
		for _, name := range []string{"ping", "info"} {
			if _, err := fmt.Sscanf(line, "cmdstat_"+name+":calls=%d", &n); err == nil {
				total -= n
			}
		}
	}
	if !found {
		return 0, fmt.Errorf("redistest: no total_commands_processed in %.200q", info)
	}
	return total, nil
}
