package arrows_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/gocommand"
)

// required are the modules in the root go.mod. All of them are in the module graph of every
// importer of Holdfast, and so take part in the choice of versions. Code with further modules goes
// into a nested one, as examples/observability does.
var required = map[string]string{
	"github.com/FZambia/sentinel/v2":      "tests: redigo with Sentinel",
	"github.com/alicebob/miniredis/v2":    "conformance and examples: a server in the process",
	"github.com/cenkalti/backoff/v4":      "middleware/retry: backoff policies",
	"github.com/cespare/xxhash/v2":        "go-redis",
	"github.com/go-logr/logr":             "OpenTelemetry's API",
	"github.com/go-logr/stdr":             "OpenTelemetry's API",
	"github.com/gomodule/redigo":          "providers/redigo",
	"github.com/google/uuid":              "OpenTelemetry's SDK",
	"github.com/mna/redisc":               "tests: redigo with a Cluster",
	"github.com/redis/go-redis/v9":        "providers/goredis",
	"github.com/redis/rueidis":            "providers/rueidis",
	"github.com/valkey-io/valkey-go":      "providers/valkey",
	"github.com/yuin/gopher-lua":          "miniredis",
	"go.opentelemetry.io/auto/sdk":        "OpenTelemetry's API",
	"go.opentelemetry.io/otel":            "middleware/tracing and metrics",
	"go.opentelemetry.io/otel/log":        "OpenTelemetry's API",
	"go.opentelemetry.io/otel/metric":     "middleware/metrics",
	"go.opentelemetry.io/otel/sdk":        "tests: spans are recorded",
	"go.opentelemetry.io/otel/sdk/metric": "tests: instruments are read",
	"go.opentelemetry.io/otel/trace":      "middleware/tracing",
	"go.uber.org/atomic":                  "go-redis",
	"go.uber.org/goleak":                  "tests: no goroutine stays behind",
	"golang.org/x/net":                    "rueidis' and valkey-go's own tests",
	"golang.org/x/sys":                    "go-redis, rueidis and valkey-go",
}

// downloaded are the modules that a program downloads and links for a set of packages.
var downloaded = map[string][]string{
	"locker strategies/single": nil,
	"locker strategies/single providers/goredis": {
		"github.com/cespare/xxhash/v2", "github.com/redis/go-redis/v9", "go.uber.org/atomic", "golang.org/x/sys",
	},
	"locker strategies/single providers/redigo":  {"github.com/gomodule/redigo"},
	"locker strategies/single providers/rueidis": {"github.com/redis/rueidis", "golang.org/x/sys"},
	"locker strategies/single providers/valkey":  {"github.com/valkey-io/valkey-go", "golang.org/x/sys"},
	".": {"github.com/cenkalti/backoff/v4"},
}

// The module graph of a program that imports Holdfast grows only on purpose. A test module would
// show the whole graph, but reads go.mod files perhaps missing on a machine without a network;
// Holdfast adds the requirements of the root go.mod to that graph.
func TestRequiredModules(t *testing.T) {
	t.Parallel()
	var mod struct{ Require []struct{ Path string } }
	if err := json.Unmarshal(gocommand.Run(t, root, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	surplus := maps.Clone(required)
	for _, r := range mod.Require {
		if _, ok := required[r.Path]; !ok {
			t.Errorf("go.mod requires %s, which every user's module graph gets: move what needs it to a nested module, "+
				"or add it here with the reason", r.Path)
		}
		delete(surplus, r.Path)
	}
	for path := range surplus {
		t.Errorf("go.mod does not require %s: remove it here", path)
	}
}

func TestDownloadedModules(t *testing.T) {
	t.Parallel()
	for packages, modules := range downloaded {
		t.Run(strings.ReplaceAll(packages, " ", "+"), func(t *testing.T) {
			t.Parallel()
			args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}
			for p := range strings.FieldsSeq(packages) {
				args = append(args, "./"+p)
			}
			got := slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(gocommand.Run(t, root, args...))))))
			got = slices.DeleteFunc(got, func(path string) bool { return path == module })
			if !slices.Equal(got, modules) {
				t.Errorf("a program downloads\n%q, not\n%q", got, modules)
			}
		})
	}
}
