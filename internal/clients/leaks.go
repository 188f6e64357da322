package clients

import (
	"time"

	"go.uber.org/goleak"
)

// VerifyNoLeaks runs the tests of m and exits, as goleak.VerifyTestMain does. It ignores goroutines
// that clients leave behind, and waits a minute for the end of all others.
func VerifyNoLeaks(m goleak.TestingM) { goleak.VerifyTestMain(settling{m}, leftByClients...) }

// settling is an M that waits, after its tests, until no goroutine is left, for a minute at most.
type settling struct{ goleak.TestingM }

// Run implements goleak.TestingM.
func (m settling) Run() int {
	code := m.TestingM.Run()
	for end := time.Now().Add(time.Minute); code == 0 && goleak.Find(leftByClients...) != nil && time.Now().Before(end); {
		continue // Find has waited
	}
	return code
}

var leftByClients = []goleak.Option{
	// Without its server a client of go-redis dials every second, and then sees whether it was closed.
	goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
	// A cluster client of rueidis, closed or not, waits five seconds until it closes connections to nodes
	// it needs no more, and up to a second before it asks for the slots.
	goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
	goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	// Five seconds after a redirection it closes the replaced connection.
	goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
	// The same of valkey-go.
	goleak.IgnoreAnyFunction("github.com/valkey-io/valkey-go.(*clusterClient)._refresh.func2"),
	goleak.IgnoreAnyFunction("github.com/valkey-io/valkey-go.(*call).DelayDo.func1"),
	goleak.IgnoreAnyFunction("github.com/valkey-io/valkey-go.(*clusterClient).redirectOrNew.func1"),
}
