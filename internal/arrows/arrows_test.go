package arrows_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Packages of others that come with ours.
const (
	backoff   = "github.com/cenkalti/backoff/v4"
	goredis   = "github.com/redis/go-redis/v9"
	miniredis = "github.com/alicebob/miniredis/v2"
	otel      = "go.opentelemetry.io/otel"
	semconv   = "go.opentelemetry.io/otel/semconv/v1.43.0"
	redigo    = "github.com/gomodule/redigo/redis"
	rueidis   = "github.com/redis/rueidis"
	valkey    = "github.com/valkey-io/valkey-go"
)

// Packages that come with locker.
const (
	lease = "locker/lease"
	trace = "locker/locktrace"
	text  = "locker/internal/text"
)

// An arrow says what may come into a program with the packages that it imports; the standard
// library always may.
type arrow struct {
	program []string // what the program imports; "." is the module's own package
	with    []string // which packages of ours may come with that; "x/..." is x and all below it
	outside []string // which packages of others may come, with all that they bring themselves
	why     string
}

var arrows = []arrow{
	{
		program: []string{"locker/driver"},
		why:     "a strategy, and whoever handles its errors, takes on the contract and nothing else",
	},
	{
		program: []string{"locker/driver/adapter"},
		with:    []string{"locker/driver"},
		why:     "an adapter takes on the contract and the toolkit, and nothing else",
	},
	{
		program: []string{"locker/locktrace"},
		why:     "callbacks for events bring nothing with them",
	},
	{
		program: []string{"locker/lease"},
		with:    []string{"locker/locktrace", "locker/internal/..."},
		why:     "what strategies and middleware work with knows neither a Lock nor a driver",
	},
	{
		program: []string{"locker"},
		with:    []string{"locker/driver", "locker/lease", "locker/locktrace", "locker/internal/..."},
		why:     "code that is given a Locker gets no dependency with it",
	},
	{
		program: []string{"locker/lockertest"},
		with:    []string{"locker", "locker/driver", lease, trace, text},
		why:     "a unit test with the double needs neither a client nor a server",
	},
	{
		program: []string{"locker/named"},
		with:    []string{"locker", "locker/driver", lease, trace, text},
		why:     "locks by name work over any Locker, and know none of the programs that ask for them",
	},
	{
		program: []string{"strategies/reentrant"},
		with:    []string{"locker", "locker/driver", lease, trace, text, "strategies/internal/...", "strategies/keylock/..."},
		why:     "a strategy runs on any client, so it knows none",
	},
	{
		program: []string{"strategies/keylock"},
		with:    []string{"locker", "locker/driver", lease, trace, text, "strategies/keylock/..."},
		why:     "whoever writes a strategy takes on no client",
	},
	{
		program: []string{"strategies/redlock"},
		with:    []string{"locker", "locker/driver", lease, trace, text},
		why:     "a quorum composes over any Locker, so it knows no strategy and no client",
	},
	{
		program: []string{"strategies/rwhash"},
		with:    []string{"locker", "locker/driver", lease, trace, text, "strategies/internal/...", "strategies/keylock/..."},
		why:     "a strategy runs on any client, so it knows none",
	},
	{
		program: []string{"strategies/semaphore"},
		with:    []string{"locker", "locker/driver", lease, trace, text, "strategies/keylock/..."},
		why:     "a strategy runs on any client, so it knows none",
	},
	{
		program: []string{"strategies/single"},
		with:    []string{"locker", "locker/driver", lease, trace, text, "strategies/keylock/..."},
		why:     "a strategy runs on any client, so it knows none",
	},
	{
		program: []string{"strategies/watchdog"},
		with:    []string{"locker", "locker/driver", lease, trace, text},
		why:     "it renews over any Locker, so it does not know that there is a Redis",
	},
	{
		program: []string{"middleware/retry"},
		with:    []string{"locker", "locker/driver", lease, trace, text},
		outside: []string{backoff},
		why:     "waiting takes backoff policies and nothing more",
	},
	{
		program: []string{"leader"},
		with:    []string{"locker", "locker/driver", lease, trace, text},
		outside: []string{backoff},
		why:     "an election is held over any Locker, so it knows no strategy and no client",
	},
	{
		program: []string{"middleware/logging"},
		with:    []string{"locker", "locker/driver", lease, trace, text, "middleware/internal/..."},
		why:     "log/slog is in the standard library",
	},
	{
		program: []string{"middleware/metrics"},
		with:    []string{"locker", "locker/driver", lease, trace, text, "middleware/internal/..."},
		outside: []string{otel, semconv},
		why:     "a library needs OpenTelemetry's API; the SDK is the program's choice",
	},
	{
		program: []string{"middleware/tracing"},
		with:    []string{"locker", "locker/driver", lease, trace, text, "middleware/internal/..."},
		outside: []string{otel, semconv},
		why:     "a library needs OpenTelemetry's API; the SDK is the program's choice",
	},
	{
		program: []string{"locker", "providers/goredis", "middleware/logging", "middleware/metrics", "middleware/tracing"},
		with:    []string{"locker/driver", "locker/driver/adapter", lease, trace, text, "middleware/internal/..."},
		outside: []string{goredis, otel, semconv},
		why:     "a program that is observed links the exporters that it chose, and no other",
	},
	{
		program: []string{"."},
		with: []string{
			"locker", "locker/driver", lease, trace, text, "middleware/retry", "strategies/keylock/...", "strategies/single", "strategies/watchdog",
		},
		outside: []string{backoff},
		why:     "the usual chain leaves the client to the program, and telemetry out",
	},
	{
		program: []string{"conformance"},
		with:    []string{"conformance/...", "internal/...", "leader", "locker/...", "middleware/...", "strategies/..."},
		outside: []string{backoff, miniredis},
		why:     "the suite is given a provider: one that it knew could pass by being special",
	},
	{
		program: []string{"conformance/drivertest"},
		with: []string{
			"conformance/internal/suite", "internal/...", "locker", "locker/driver", lease, trace, text,
			"strategies/keylock/...", "strategies/single",
		},
		outside: []string{miniredis},
		why:     "an adapter is proved by itself, and with the simplest strategy where a lock must connect",
	},
	{
		program: []string{"internal/faultproxy", "internal/localport", "internal/memnet", "internal/memredis", "internal/redistest", "internal/resp"},
		outside: []string{miniredis},
		why:     "test servers know what a server is, not what a lock is",
	},
}

// A provider comes with its client, and neither with the client of another.
func init() {
	for provider, client := range map[string]string{"goredis": goredis, "redigo": redigo, "rueidis": rueidis, "valkey": valkey} {
		arrows = append(arrows, arrow{
			program: []string{"locker", "providers/" + provider},
			with:    []string{"locker/driver", "locker/driver/adapter", lease, trace, text},
			outside: []string{client},
			why:     "a program links the client that it chose, and no other",
		}, arrow{
			program: []string{"providers/" + provider},
			with:    []string{"locker/driver", "locker/driver/adapter"},
			outside: []string{client},
			why:     "an adapter can become a module of its own: it knows no strategy and nothing internal",
		})
	}
}

func TestArrows(t *testing.T) {
	t.Parallel()
	var outside []string
	for _, a := range arrows {
		outside = append(outside, a.outside...)
	}
	g := list(t, outside...)

	for _, a := range arrows {
		t.Run(strings.Join(a.program, "+"), func(t *testing.T) {
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
			if !slices.ContainsFunc(arrows, func(a arrow) bool { return slices.Contains(a.program, name) }) {
				t.Errorf("no arrow says what %s may bring into a program: add one", path)
			}
		}
	})
}

// No package of this module links the SDK, which is in go.mod for tests.
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

// Each example of this module is one file, which a user can copy into a program.
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

// strays returns how each package that a does not allow comes into its program. What such a package
// brings is left out.
func (a arrow) strays(t *testing.T, g graph) []string {
	t.Helper()
	var roots []string
	for _, p := range a.program {
		roots = append(roots, strings.TrimSuffix(module+"/"+p, "/."))
	}
	linked, foreign := g.links(t, roots), g.links(t, a.outside)
	allowed := func(path string) bool {
		name, ours := ourName(path)
		if !ours {
			_, brought := foreign[path]
			return brought
		}
		return slices.Contains(a.program, name) ||
			slices.ContainsFunc(a.with, func(pattern string) bool { return match(pattern, name) })
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
