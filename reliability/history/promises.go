package history

import (
	"fmt"
	"time"
)

// drift returns the part of a lease left unused by its Deadline because clocks drift.
func drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// brokenPromise describes an answer that is wrong in any order of the calls and after any loss of a
// server's state. It returns "" if there is none.
func brokenPromise(events []Event) string {
	for _, e := range events {
		if e.Outcome != OK {
			continue
		}
		if text := e.broken(); text != "" {
			return fmt.Sprintf("%s of %s: %s", e.Kind, e.ID, text)
		}
	}
	return ""
}

// broken describes the fault of a successful call; "": none.
func (e Event) broken() string {
	switch e.Kind {
	case Acquire, Renew:
		if owed := e.Call + int64(e.TTL-drift(e.TTL)); e.Deadline < owed && e.From == "" {
			return fmt.Sprintf("the lease of %v ends %v early", e.TTL, time.Duration(owed-e.Deadline))
		}
		if e.Kind == Acquire && e.Fenced && e.Fence == 0 {
			return "it has no fencing token"
		}
	}
	switch e.Kind {
	case Renew, Downgrade, Upgrade:
		switch {
		case e.Before == 0:
		case e.Before < e.Call:
			return fmt.Sprintf("the lease had ended %v before", time.Duration(e.Call-e.Before))
		case e.Deadline < e.Before:
			return fmt.Sprintf("it took %v off the lease", time.Duration(e.Before-e.Deadline))
		}
	}
	return ""
}
