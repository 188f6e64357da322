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

	"github.com/holdfast-go/holdfast/internal/gocommand"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const module = "github.com/holdfast-go/holdfast"

var root = filepath.Join("..", "..")

// listed is what go list tells of one package.
type listed struct {
	ImportPath, Name  string
	Standard, DepOnly bool
	GoFiles, Imports  []string
	EmbedFiles        []string
}

// graph has every package of this module and everything that they and the packages named beside
// them import.
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

// links returns what a program that imports roots links, the standard library left out. Each
// package is mapped to one of its importers, a root to "".
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
