package arrows_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Foreign packages linked with ours.
const (
	backoff   = "github.com/cenkalti/backoff/v4"
	goredis   = "github.com/redis/go-redis/v9"
	miniredis = "github.com/alicebob/miniredis/v2"
	otel      = "go.opentelemetry.io/otel go.opentelemetry.io/otel/semconv/v1.43.0"
	redigo    = "github.com/gomodule/redigo/redis"
	rueidis   = "github.com/redis/rueidis"
	valkey    = "github.com/valkey-io/valkey-go"
)

// Packages of ours linked together.
const (
	// shared is what locker and locker/lease share.
	shared = "internal/acquisition internal/callchain internal/lockerrors "

	// below is what locker is made with.
	below = "locker/driver locker/lease locker/locktrace locker/internal/gather locker/internal/text " +
		"internal/argument internal/sibling " + shared

	locks = "locker " + below

	// strategy is what strategies are made with.
	strategy = locks + "internal/bounded "

	// kit is what adapters are made with.
	kit = "locker/driver locker/driver/adapter locker/internal/gather internal/bounded "
)

// arrow lists the packages that a program may link through its imports; the standard library is
// always allowed. Packages are separated by blanks.
type arrow struct {
	program string // its imports; "." is the module's own package
	with    string // packages of ours allowed with them; "x/..." is x and all below it
	outside string // foreign packages allowed, with their own imports
	why     string
}

var arrows = []arrow{
	{"locker/driver", "", "", "a strategy, and whoever handles its errors, takes on the contract and nothing else"},
	{"locker/driver/adapter", kit, "", "an adapter takes on the contract and the toolkit, and nothing else"},
	{"locker/locktrace", "", "", "callbacks for events bring nothing with them"},
	{
		"locker/lease", "locker/driver locker/locktrace locker/internal/... " + shared, "",
		"what strategies and middleware work with does not know a Lock",
	},
	{"locker", below + "locker/internal/...", "", "code that is given a Locker gets no dependency with it"},
	{"locker/lockertest", locks, "", "a unit test with the double needs neither a client nor a server"},
	{"locker/named", locks, "", "locks by name work over any Locker, and know none of the programs that ask for them"},
	{"strategies/reentrant", strategy + "strategies/internal/... strategies/keylock/...", "", "a strategy runs on any client, so it knows none"},
	{"strategies/keylock", strategy + "strategies/keylock/...", "", "whoever writes a strategy takes on no client"},
	{"strategies/redlock", strategy, "", "a quorum composes over any Locker, so it knows no strategy and no client"},
	{"strategies/redisson", strategy + "strategies/keylock/...", "", "a strategy runs on any client, so it knows none"},
	{"strategies/rwhash", strategy + "strategies/internal/... strategies/keylock/...", "", "a strategy runs on any client, so it knows none"},
	{"strategies/semaphore", strategy + "strategies/keylock/...", "", "a strategy runs on any client, so it knows none"},
	{"strategies/single", strategy + "strategies/keylock/...", "", "a strategy runs on any client, so it knows none"},
	{"strategies/watchdog", strategy, "", "it renews over any Locker, so it does not know that there is a Redis"},
	{"middleware/handover", locks, "", "it hands over over any Locker, by public API alone: it knows neither how one waits nor what is at the server"},
	{"middleware/retry", locks, backoff, "waiting takes backoff policies and nothing more"},
	{"leader", locks, backoff, "an election is held over any Locker, so it knows no strategy and no client"},
	{"middleware/logging", locks + "middleware/internal/...", "", "log/slog is in the standard library"},
	{
		"middleware/metrics", locks + "middleware/internal/...", otel,
		"a library needs OpenTelemetry's API; the SDK is the program's choice",
	},
	{
		"middleware/tracing", locks + "middleware/internal/...", otel,
		"a library needs OpenTelemetry's API; the SDK is the program's choice",
	},
	{
		"locker providers/goredis middleware/logging middleware/metrics middleware/tracing",
		below + kit + "middleware/internal/...", goredis + " " + otel,
		"a program that is observed links the exporters that it chose, and no other",
	},
	{
		".", strategy + "middleware/handover middleware/retry strategies/keylock/... strategies/single strategies/watchdog", backoff,
		"the usual chain leaves the client to the program, and telemetry out",
	},
	{
		"conformance", "conformance/... internal/... leader locker/... middleware/... strategies/...", backoff + " " + miniredis,
		"the suite is given a provider: one that it knew could pass by being special",
	},
	{
		"conformance/drivertest", locks + "conformance/internal/suite internal/... strategies/keylock/... strategies/single", miniredis,
		"an adapter is proved by itself, and with the simplest strategy where a lock must connect",
	},
	{
		"internal/faultproxy internal/localport internal/memnet internal/memredis internal/redistest internal/resp", "", miniredis,
		"test servers know what a server is, not what a lock is",
	},
}

// A provider comes with its client, and neither with the client of another.
func init() {
	for provider, client := range map[string]string{"goredis": goredis, "redigo": redigo, "rueidis": rueidis, "valkey": valkey} {
		arrows = append(arrows,
			arrow{
				"locker providers/" + provider, below + kit, client,
				"a program links the client that it chose, and no other",
			},
			arrow{
				"providers/" + provider, kit, client,
				"an adapter can become a module of its own: it knows no strategy",
			})
	}
}

func TestArrows(t *testing.T) {
	t.Parallel()
	var outside []string
	for _, a := range arrows {
		outside = append(outside, strings.Fields(a.outside)...)
	}
	g := list(t, outside...)

	for _, a := range arrows {
		t.Run(strings.ReplaceAll(a.program, " ", "+"), func(t *testing.T) {
			t.Parallel()
			for _, s := range a.strays(t, g) {
				t.Errorf("%s\nis against: %s", s, a.why)
			}
		})
	}

	t.Run("every package has an arrow", func(t *testing.T) {
		t.Parallel()
		for path, p := range g {
			name, ours := ourName(path)
			if !ours || p.DepOnly || p.Name == "main" || match("examples/...", name) || slices.Contains(strings.Split(name, "/"), "internal") {
				continue
			}
			if !slices.ContainsFunc(arrows, func(a arrow) bool { return slices.Contains(strings.Fields(a.program), name) }) {
				t.Errorf("no arrow says what %s may bring into a program: add one", path)
			}
		}
	})
}

// A provider can become a module of its own: what it imports is for every adapter to import.
func TestProvidersImportNothingInternal(t *testing.T) {
	t.Parallel()
	for path, p := range list(t) {
		if name, ours := ourName(path); !ours || !strings.HasPrefix(name, "providers/") {
			continue
		}
		for _, i := range p.Imports {
			if name, ours := ourName(i); ours && slices.Contains(strings.Split(name, "/"), "internal") {
				t.Errorf("%s imports %s", path, i)
			}
		}
	}
}

// No package of this module links the SDK: go.mod has it for tests.
func TestNoPackageLinksTheSDK(t *testing.T) {
	t.Parallel()
	const sdk = "go.opentelemetry.io/otel/sdk"
	g := list(t, sdk+"/trace")
	var ours []string
	for path, p := range g {
		if _, own := ourName(path); own && !p.DepOnly {
			ours = append(ours, path)
		}
	}
	linked := g.links(t, ours)
	for _, path := range slices.Sorted(maps.Keys(linked)) {
		if match(sdk+"/...", path) {
			t.Errorf("a program links %s", chain(linked, path))
		}
	}
}

// Each example of this module is one file, for users to copy into a program.
func TestExamplesStandAlone(t *testing.T) {
	t.Parallel()
	examples := 0
	for path, p := range list(t) {
		if name, ours := ourName(path); !ours || p.DepOnly || p.Name != "main" || !strings.HasPrefix(name, "examples/") {
			continue
		}
		examples++
		if !slices.Equal(p.GoFiles, []string{"main.go"}) || len(p.EmbedFiles) > 0 {
			t.Errorf("%s consists of %q and embeds %q: want main.go alone", path, p.GoFiles, p.EmbedFiles)
		}
		for _, i := range p.Imports {
			if match(module+"/internal/...", i) || match(module+"/examples/...", i) {
				t.Errorf("%s imports %s, which a copy elsewhere cannot", path, i)
			}
		}
	}
	if examples < 6 {
		t.Errorf("%d examples were found", examples)
	}
}

// strays returns the packages not allowed by a, with the import path into its program. The imports
// of such a package are left out.
func (a arrow) strays(t *testing.T, g graph) []string {
	t.Helper()
	var roots []string
	for p := range strings.FieldsSeq(a.program) {
		roots = append(roots, strings.TrimSuffix(module+"/"+p, "/."))
	}
	linked, foreign := g.links(t, roots), g.links(t, strings.Fields(a.outside))
	allowed := func(path string) bool {
		name, ours := ourName(path)
		if !ours {
			_, brought := foreign[path]
			return brought
		}
		return slices.ContainsFunc(strings.Fields(a.program+" "+a.with), func(pattern string) bool { return match(pattern, name) })
	}
	var strays []string
	for _, path := range slices.Sorted(maps.Keys(linked)) {
		if !allowed(path) && allowed(linked[path]) {
			strays = append(strays, chain(linked, path))
		}
	}
	return strays
}

// ourName is a package's path below the module's; "." is the module's own package.
func ourName(path string) (name string, ours bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

func match(pattern, name string) bool {
	base, below := strings.CutSuffix(pattern, "/...")
	return name == base || below && strings.HasPrefix(name, base+"/")
}
