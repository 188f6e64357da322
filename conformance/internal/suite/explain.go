package suite

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// lastEvents is how many events of a server are shown.
const lastEvents = 60

// again returns the command to run a test alone.
func again(tb testing.TB) string {
	elements := strings.Split(tb.Name(), "/")
	for i, e := range elements {
		elements[i] = "^" + regexp.QuoteMeta(e) + "$"
	}
	command := fmt.Sprintf("go test -count=1 -run '%s'", strings.ReplaceAll(strings.Join(elements, "/"), "'", `'\''`))
	if build, ok := debug.ReadBuildInfo(); ok {
		command += " " + strings.TrimSuffix(build.Path, ".test")
	}
	return command
}

// story returns the last requests and answers of a case's servers in fake time, or nothing of others.
func (s *Server) story() string {
	var b strings.Builder
	servers := s.Nodes
	if servers == nil {
		servers = []*Server{s}
	}
	for i, s := range servers {
		if s.events != nil {
			fmt.Fprintf(&b, "\nserver %d, last events in fake time:\n  %s", i+1, strings.Join(s.events(lastEvents), "\n  "))
		}
	}
	return b.String()
}
