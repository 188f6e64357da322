package clients

import (
	"testing"

	"go.uber.org/goleak"
)

// VerifyNoLeaks runs the tests of m and exits, as goleak.VerifyTestMain does. It ignores goroutines
// left by a client to end by themselves.
func VerifyNoLeaks(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A go-redis client without its server looks every second whether it is back, and then
		// whether the client was closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
		// A cluster client of rueidis waits there, closed or not: see providers/rueidis.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		// It closes a connection replaced by a redirection, five seconds later.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		// So does valkey-go.
		goleak.IgnoreAnyFunction("github.com/valkey-io/valkey-go.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/valkey-io/valkey-go.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/valkey-io/valkey-go.(*clusterClient).redirectOrNew.func1"))
}
