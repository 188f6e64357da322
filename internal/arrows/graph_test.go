package arrows_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/gocommand"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const module = "github.com/holdfast-go/holdfast"

var root = filepath.Join("..", "..")

// listed is go list's output for one package.
type listed struct {
	ImportPath, Name  string
	Standard, DepOnly bool
	GoFiles, Imports  []string
	EmbedFiles        []string
}

// graph has every package of this module, the packages named beside them, and all their imports.
type graph map[string]listed

// list returns the graph of the root module and of the packages in beside.
func list(t *testing.T, beside ...string) graph {
	t.Helper()
	out := gocommand.Run(t, root, append([]string{"list", "-deps", "-json=ImportPath,Name,Standard,DepOnly,GoFiles,EmbedFiles,Imports", "./..."}, beside...)...)
	g := graph{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return g
		case err != nil:
			t.Fatalf("go list: %v", err)
		}
		g[p.ImportPath] = p
	}
}

// links returns the packages linked into a program that imports roots, without the standard
// library. Each package is mapped to one of its importers, a root to "".
func (g graph) links(t *testing.T, roots []string) map[string]string {
	t.Helper()
	importer := map[string]string{}
	for _, r := range roots {
		if _, ok := g[r]; !ok {
			t.Fatalf("there is no package %s", r)
		}
		importer[r] = ""
	}
	for queue := slices.Clone(roots); len(queue) > 0; queue = queue[1:] {
		for _, next := range g[queue[0]].Imports {
			if _, seen := importer[next]; seen || g[next].Standard || next == "C" {
				continue
			}
			importer[next] = queue[0]
			queue = append(queue, next)
		}
	}
	return importer
}

// chain tells how pkg comes into a program.
func chain(importer map[string]string, pkg string) string {
	path := []string{pkg}
	for by := importer[pkg]; by != ""; by = importer[by] {
		path = append(path, by)
	}
	slices.Reverse(path)
	return strings.Join(path, " -> ")
}

// strays finds the imports known to be wrong: the test above relies on it.
func TestStraysAreFound(t *testing.T) {
	t.Parallel()
	ours := func(name string) string { return module + "/" + name }
	g := graph{
		"fmt":                           {Standard: true},
		"example.com/client":            {Imports: []string{"fmt", "example.com/hash"}},
		"example.com/hash":              {Imports: []string{"fmt"}},
		"example.com/other":             {Imports: []string{"example.com/hash"}},
		ours("locker"):                  {Imports: []string{"fmt", ours("locker/driver")}},
		ours("locker/driver"):           {Imports: []string{"fmt"}},
		ours("providers/good"):          {Imports: []string{"example.com/client", ours("locker/driver")}},
		ours("providers/two"):           {Imports: []string{"example.com/client", "example.com/other"}},
		ours("strategies/internal/x"):   {Imports: []string{ours("strategies/internal/x/y")}},
		ours("strategies/internal/x/y"): {Imports: []string{ours("providers/good")}},
	}
	type test struct {
		program, with, outside string
		want                   []string
	}
	check.Each(t, map[string]test{
		"all allowed": {"locker providers/good", "locker/...", "example.com/client", nil},
		"one of ours": {"locker", "", "", []string{ours("locker") + " -> " + ours("locker/driver")}},
		"a prefix of the name is not the package": {
			"locker", "locker/d locker/drive/...", "",
			[]string{ours("locker") + " -> " + ours("locker/driver")},
		},
		"a second client": {"providers/two", "", "example.com/client", []string{ours("providers/two") + " -> example.com/other"}},
		"a client behind others": {
			"strategies/internal/x", "strategies/internal/... providers/good locker/driver", "",
			[]string{ours("strategies/internal/x") + " -> " + ours("strategies/internal/x/y") + " -> " + ours("providers/good") +
				" -> example.com/client"},
		},
	}, func(t *testing.T, test test) {
		check.EqualSlices(t, "strays", (arrow{test.program, test.with, test.outside, ""}).strays(t, g), test.want)
	})
}
