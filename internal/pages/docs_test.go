package pages_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
)

// docs/errors.md has a section for every exported error of these packages.
func TestErrorsPage(t *testing.T) {
	t.Parallel()
	page := read(t, filepath.Join("docs", "errors.md"))
	headings := strings.Join(regexp.MustCompile(`(?m)^### .*$`).FindAllString(page, -1), "\n")
	for _, pkg := range []string{"leader", "locker", "strategies/redlock", "strategies/semaphore", "strategies/watchdog"} {
		names := exportedErrors(t, pkg)
		if len(names) == 0 {
			t.Errorf("package %s has no exported errors", pkg)
		}
		for _, name := range names {
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(headings) {
				t.Errorf("no section of docs/errors.md has %s of package %s in its heading", name, pkg)
			}
		}
	}
}

// exportedErrors returns the exported variables Err... and types ...Error of the package in dir.
func exportedErrors(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	check.Must(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		check.Must(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				return false
			case *ast.ValueSpec:
				for _, name := range n.Names {
					if strings.HasPrefix(name.Name, "Err") {
						names = append(names, name.Name)
					}
				}
			case *ast.TypeSpec:
				if n.Name.IsExported() && strings.HasSuffix(n.Name.Name, "Error") {
					names = append(names, n.Name.Name)
				}
			}
			return true
		})
	}
	return names
}

// Go code in docs/*.md behind a comment with a file's name is quoted from this file.
func TestQuotedCode(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("docs", "*.md"))
	check.Must(t, err)
	quote := regexp.MustCompile("(?s)<!-- (\\S+\\.go) -->\n```go\n(.*?)```")
	found := 0
	for _, page := range pages {
		for _, m := range quote.FindAllStringSubmatch(read(t, page), -1) {
			found++
			if !strings.Contains(read(t, filepath.FromSlash(m[1])), m[2]) {
				t.Errorf("%s: not in %s:\n%s", page, m[1], m[2])
			}
		}
	}
	if found == 0 {
		t.Error("no page quotes code")
	}
}

// The comment of a package that names a page of docs links to it, and the page exists.
func TestPagesAreLinked(t *testing.T) {
	t.Parallel()
	const site = "https://github.com/holdfast-go/holdfast/blob/main/"
	found := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "internal" || len(entry.Name()) > 1 && entry.Name()[0] == '.'):
			return filepath.SkipDir
		case entry.Name() != "doc.go" && entry.Name() != "main.go":
			return nil
		}
		comment, _, _ := strings.Cut(read(t, path), "\npackage ")
		for _, m := range regexp.MustCompile(`(\S?)(docs/[\w-]+\.md)`).FindAllStringSubmatch(comment, -1) {
			found++
			if !strings.Contains(comment, "\n// ["+m[2]+"]: "+site+m[2]) || m[1] != "[" && m[1] != "/" {
				t.Errorf("%s: %s is not a link", path, m[2])
			}
			read(t, filepath.FromSlash(m[2]))
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d pages found: %v", found, err)
	}
}

// docs/versions.md lists the servers tested by scripts/matrix.sh, and their origins. The CI
// workflow runs it on each of them.
func TestServerVersions(t *testing.T) {
	t.Parallel()
	table := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| ((?:Redis|Valkey) [\\d.]+) \\| ([\\d.]+) \\| `(.+)` \\|$").
		FindAllStringSubmatch(read(t, filepath.Join("docs", "versions.md")), -1) {
		table[m[1]] = m[3]
		if !strings.HasPrefix("Redis "+m[2], m[1]+".") && !strings.HasPrefix("Valkey "+m[2], m[1]+".") {
			t.Errorf("docs/versions.md has %s as a version of %s", m[2], m[1])
		}
	}
	script := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\t\["(.+)"\]=([^'\s]\S*)$`).
		FindAllStringSubmatch(read(t, filepath.Join("scripts", "matrix.sh")), -1) {
		script[m[1]] = m[2]
	}
	if len(script) == 0 || !maps.Equal(table, script) {
		t.Errorf("docs/versions.md has\n%v\nand scripts/matrix.sh\n%v", table, script)
	}
	var jobs []string
	for _, m := range regexp.MustCompile(`(?m)^ +- ((?:Redis|Valkey) [\d.]+)$`).
		FindAllStringSubmatch(read(t, filepath.Join(".github", "workflows", "ci.yml")), -1) {
		jobs = append(jobs, m[1])
	}
	if want := slices.Sorted(maps.Keys(table)); !slices.Equal(jobs, want) {
		t.Errorf("the CI workflow tests %q, not %q", jobs, want)
	}
}
