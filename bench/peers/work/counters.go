//go:build unix

package work

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// counters are the counters of servers.
type counters struct {
	commands int64 // executed, those inside scripts included
	reads    int64 // of requests from connections: about one for each round trip; 0 before Redis 7
}

// setUp are the commands of connections, not of locks.
var setUp = []string{"info", "ping", "hello", "auth", "select", "client", "command", "script", "config", "flushall", "dbsize"}

// read returns the servers' counters, in sum.
func read(servers []*redistest.Server) (sum counters, err error) {
	for _, s := range servers {
		reply, err := s.Command("INFO", "everything")
		if err != nil {
			return sum, err
		}
		text, _ := reply.(string)
		c, err := parse(text)
		if err != nil {
			return sum, fmt.Errorf("%s: %w", s.Addr(), err)
		}
		sum.commands += c.commands
		sum.reads += c.reads
	}
	return sum, nil
}

// parse reads the reply to INFO everything.
func parse(info string) (c counters, err error) {
	found := false
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "total_reads_processed" {
			if _, err := fmt.Sscan(value, &c.reads); err != nil {
				return c, fmt.Errorf("INFO: %q: %w", line, err)
			}
		}
		command, ok := strings.CutPrefix(name, "cmdstat_")
		if !ok {
			continue
		}
		var calls int64
		if _, err := fmt.Sscanf(value, "calls=%d,", &calls); err != nil {
			return c, fmt.Errorf("INFO: %q: %w", line, err)
		}
		found = true
		if !isSetUp(command) {
			c.commands += calls
		}
	}
	if !found {
		return c, fmt.Errorf("no command statistics in %.100q", info)
	}
	return c, nil
}

func isSetUp(command string) bool {
	command, _, _ = strings.Cut(command, "|")
	return slices.Contains(setUp, command)
}
