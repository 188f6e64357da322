package interop

import (
	"cmp"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/interop/install"
	"github.com/holdfast-go/holdfast/interop/peer"
)

// kind is a library with a set of options.
type kind struct {
	name     string // the kind's argument of its peer
	library  string // as in the table
	version  string
	pinned   string // the file with the version
	language string // of package install; "" is Go
	strategy string // ours, of gopeer.NewStrategy; "" is single
	signals  string // our strategy that hears theirs and sends their signal; "": they have none
	prefix   string // ours, Config.Prefix of the strategy
	looks    string // the reply of the program's strategy_of for a lock of theirs
	key      string // theirs, as their documentation names it
	wakes    waking
	// attempts is how often it tries before it sleeps. Default: 1.
	attempts int
	// renewsItself: there is no call for a renewal.
	renewsItself bool
	// steals: a late renewal or release changes the key of the next holder.
	steals bool
}

// waking is how a library waits for a lock of ours.
type waking string

const (
	polls  waking = "polls"
	tracks waking = "sees our DEL"
	sleeps waking = "sleeps until its timeout"
	never  waking = "does not wait"
	wakes  waking = "woken, both ways"
)

// Times of the peers. Leases are ended by PEXPIRE or DEL, so no TTL passes.
const (
	ttl  = 10 * time.Minute
	long = 10 * time.Minute // longer than peer.Patience: who gets in was woken or polls
	// short is the wait of a peer that sleeps until it ends.
	short = 10 * time.Second
)

// kinds are the libraries whose locks and those of strategies/single or strategies/redisson are the
// same key.
var kinds = []kind{
	{
		name: "redsync", library: "redsync", version: "4.18.1", pinned: "go.mod",
		looks: "string redsync", key: "the name", wakes: polls,
	},
	{
		name: "redislock", library: "bsm/redislock", version: "0.9.4", pinned: "go.mod",
		looks: "single", key: "the key of `Obtain`", wakes: polls,
	},
	{
		name: "rueidislock", library: "rueidislock, `KeyMajority: 1`", version: "1.0.79", pinned: "go.mod",
		prefix: "rueidislock:0:", looks: "string", key: "`rueidislock:0:` + name", wakes: tracks, renewsItself: true,
	},
	{
		name: "redis-py", library: "redis-py `Lock`", version: "8.1.0", pinned: "python/requirements.txt", language: "python",
		looks: "string redis-py or redlock", key: "the name", wakes: polls,
	},
	{
		name: "python-redis-lock", library: "python-redis-lock", version: "4.0.1", pinned: "python/requirements.txt", language: "python",
		prefix: "lock:", looks: "string", key: "`lock:` + name", wakes: sleeps, signals: "python",
	},
	{
		name: "redlock-4", library: "redlock (Node)", version: "4.2.0", pinned: "node/package.json", language: "node",
		looks: "string redis-py or redlock", key: "each resource", wakes: polls,
	},
	{
		name: "redlock-5", library: "redlock (Node)", version: "5.0.0-beta.2", pinned: "node/package.json", language: "node",
		looks: "string redis-py or redlock", key: "each resource", wakes: polls,
	},
	{
		name: "spring-spin", library: "Spring Integration, `SPIN_LOCK`", version: "7.1.0", pinned: "java/pom.xml", language: "java",
		prefix: "registryKey:", looks: "string Spring Integration", key: "`registryKey:` + lock key", wakes: polls,
	},
	{
		name: "spring-pubsub", library: "Spring Integration, `PUB_SUB_LOCK`", version: "7.1.0", pinned: "java/pom.xml", language: "java",
		prefix: "registryKey:", looks: "string Spring Integration", key: "`registryKey:` + lock key", wakes: sleeps,
		signals:  "spring",
		attempts: 2, // before and after it subscribes
	},
	{
		name: "shedlock", library: "ShedLock, redis-spring", version: "7.10.1", pinned: "java/pom.xml", language: "java",
		prefix: "job-lock:default:", looks: "string ShedLock", key: "`job-lock:` + environment + `:` + name", wakes: never, steals: true,
	},
	{
		name: "shedlock-safe", library: "ShedLock, `safeUpdate(true)`", version: "7.10.1", pinned: "java/pom.xml", language: "java",
		prefix: "job-lock:default:", looks: "string ShedLock", key: "`job-lock:` + environment + `:` + name", wakes: never,
	},
	{
		name: "redisson", library: "Redisson `RLock` and `strategies/redisson`", version: "4.7.0", pinned: "java/pom.xml", language: "java",
		strategy: "redisson", looks: "redisson", key: "the name", wakes: wakes,
		attempts: 2, // before and after it subscribes
	},
	{
		name: "redisson-watchdog", library: "the same, with the watchdog", version: "4.7.0", pinned: "java/pom.xml", language: "java",
		strategy: "redisson", looks: "redisson", key: "the name", wakes: wakes, attempts: 2, renewsItself: true,
	},
}

// isWoken reports whether a release of ours can wake who waits.
func (k kind) isWoken() bool { return k.wakes != polls && k.wakes != never }

// hearing is our strategy with all that wakes either side.
func (k kind) hearing() string { return cmp.Or(k.signals, "keyspace") }

// wait is how long the kind is told to wait for a lock of ours.
func (k kind) wait() time.Duration {
	if k.wakes == sleeps {
		return short
	}
	return long
}

// start starts a peer of the kind.
func (k kind) start(tb testing.TB, addr string) *peer.Process {
	tb.Helper()
	if k.language == "" {
		return startGo(tb, k.name, addr, "")
	}
	return peer.Start(tb, install.Need(tb, k.language).With(k.name, addr))
}

// startOurs starts a peer in Go with a client and our strategy.
func (k kind) startOurs(tb testing.TB, client, addr string) *peer.Process {
	tb.Helper()
	return startGo(tb, strings.TrimPrefix(k.strategy+"/"+client, "/"), addr, k.prefix)
}

// startGo starts a peer in Go: this executable.
func startGo(tb testing.TB, kind, addr, prefix string) *peer.Process {
	tb.Helper()
	self, err := os.Executable()
	check.Must(tb, err)
	return peer.Start(tb, peer.Command{Args: []string{self, kind, addr, prefix}, Env: []string{goPeer + "=1"}})
}
