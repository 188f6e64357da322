package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/gocommand"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write api.txt of each module")

var root = filepath.Join("..", "..")

// Each importable module has a listing of its exports.
func TestListings(t *testing.T) {
	t.Parallel()
	nested, err := filepath.Glob(filepath.Join(root, "integrations", "*", "go.mod"))
	check.Must(t, err)
	for _, mod := range append(nested, filepath.Join(root, "go.mod")) {
		dir := filepath.Dir(mod)
		name, err := filepath.Rel(root, dir)
		check.Must(t, err)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := exports(t, dir)
			if len(got) == 0 {
				t.Fatal("no package exports anything")
			}
			file := filepath.Join(dir, "api.txt")
			if *update {
				check.Must(t, os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644))
				return
			}
			text, err := os.ReadFile(file)
			check.Must(t, err)
			if diff := difference(strings.Split(strings.TrimSpace(string(text)), "\n"), got); diff != nil {
				t.Errorf("the API is not what api.txt lists:\n%s\nIf that is intended (see docs/versions.md): "+
					"go test ./internal/api -update", strings.Join(diff, "\n"))
			}
		})
	}
}

// difference returns the lines of before alone, after "- ", and those of after alone, after "+ ".
// Both are sorted.
func difference(before, after []string) (diff []string) {
	for _, line := range before {
		if _, found := slices.BinarySearch(after, line); !found {
			diff = append(diff, "- "+line)
		}
	}
	for _, line := range after {
		if _, found := slices.BinarySearch(before, line); !found {
			diff = append(diff, "+ "+line)
		}
	}
	return diff
}

// exports lists the exports of the importable packages of the module in dir, sorted.
func exports(t *testing.T, dir string) (lines []string) {
	t.Helper()
	files := map[string]string{} // import path -> export data
	var paths []string
	out := gocommand.Run(t, dir, "list", "-export", "-deps", "-json=ImportPath,Name,Export,DepOnly", "./...")
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Name, Export string
			DepOnly                  bool
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
		if !p.DepOnly && p.Name != "main" && !isInternal(p.ImportPath) {
			paths = append(paths, p.ImportPath)
		}
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(files[path])
	})
	for _, path := range paths {
		pkg, err := imports.Import(path)
		check.Must(t, err)
		lines = append(lines, list(pkg)...)
	}
	slices.Sort(lines)
	return lines
}

func isInternal(path string) bool { return slices.Contains(strings.Split(path, "/"), "internal") }
