package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/check"
)

// Each case in fake time has a mutant for it to catch.
func TestEveryCaseHasAMutant(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("m*_test.go") // mutant_*_test.go, and main_test.go with flawed drivers
	check.Must(t, err)
	named := map[string]bool{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		check.Must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					named[text] = true
				}
			}
			return true
		})
	}
	for _, c := range cases {
		if slices.Contains(c.on, suite.Memory) && !named[c.name] {
			t.Errorf("no mutant names the case %q", c.name)
		}
	}
}
