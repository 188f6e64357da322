package single

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// Signal is how a release wakes the waiters of another library that sleep until its own signal. It is
// sent in the script of the release, if that leaves the lock free, and a failure of it is ignored.
type Signal int

const (
	// SpringPubSub is the message that ends the sleep of PUB_SUB_LOCK, of Spring Integration's
	// RedisLockRegistry (https://docs.spring.io/spring-integration/reference/redis.html): the key, on
	// the channel registryKey-channel:key, and for versions before 6.5.3 on registryKey-channel.
	// Waiters of Holdfast listen on the first too, which wakes each of them at every release of the
	// name; so not in a Cluster with sharded channels, where they poll. Prefix is the registry key and
	// a colon.
	SpringPubSub Signal = iota + 1
	// PythonRedisLock is the list that ends the sleep of one waiter of python-redis-lock
	// (https://pypi.org/project/python-redis-lock): lock-signal:name, which lasts for a second. In a
	// Cluster it is left out unless its slot is at the node of the lock. The library has no message
	// for waiters of Holdfast: without Config.Keyspace they poll, and hardly get the lock. Prefix
	// begins with "lock:".
	PythonRedisLock
)

// withSignal returns s with releases that send the signal.
func withSignal(s keylock.Spec, signal Signal, prefix string) (keylock.Spec, error) {
	switch signal {
	case SpringPubSub:
		registry, ok := strings.CutSuffix(prefix, ":")
		if !ok || registry == "" {
			return s, argument.Invalid("single.Config.Prefix with SpringPubSub", prefix,
				"the registry key and a colon")
		}
		s.Release = releaseForSpring(len(registry))
		s.Listen = listenTo(registry + "-channel:")
	case PythonRedisLock:
		if !strings.HasPrefix(prefix, "lock:") {
			return s, argument.Invalid("single.Config.Prefix with PythonRedisLock", prefix,
				`"lock:", or longer`)
		}
		s.Release = releaseForPython()
	default:
		return s, argument.Invalid("single.Config.Signal", strconv.Itoa(int(signal)),
			"SpringPubSub, PythonRedisLock, or 0 for none")
	}
	return s, nil
}

// Drivers keep each script that they have sent: all Lockers share them.
var (
	releaseForPython = sync.OnceValue(func() *driver.Script { return signalling(signalPythonLua) })
	springReleases   sync.Map // of int, the length of the registry key, to *driver.Script
)

func releaseForSpring(registry int) *driver.Script {
	s, ok := springReleases.Load(registry)
	if !ok {
		lua := fmt.Sprintf("local registry = %d\n", registry) + signalSpringLua
		s, _ = springReleases.LoadOrStore(registry, signalling(lua))
	}
	script, _ := s.(*driver.Script)
	return script
}

// signalling returns a script that releases and then signals.
func signalling(lua string) *driver.Script {
	return driver.NewScript("local function release()\n" + releaseScript + "\nend\n" + lua)
}
