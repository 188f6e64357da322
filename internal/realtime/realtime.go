// Package realtime checks the tests in real time: they must not depend on the speed of a machine.
// CONTRIBUTING.md has the rules; Check knows the usual forms of their violations.
package realtime

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	minTTL      = 30 * time.Second
	minDeadline = 10 * time.Second
)

// deadlines are the functions with the time until a deadline as their second argument.
var deadlines = []string{"context.WithTimeout", "context.WithTimeoutCause", "bounded.New"}

// allowed begins a comment with a reason. The comment excepts its line and the line below, or the
// whole file if it is above the package clause.
const allowed = "//realtime:ok "

// Finding is a line against a rule.
type Finding struct {
	Pos  token.Position
	Rule string
}

func (f Finding) String() string { return fmt.Sprintf("%s: %s", f.Pos, f.Rule) }

// Check returns the lines against a rule, below root, in test files that run in real time. A file
// that imports testing/synctest, or calls check.InFakeTime or check.EachInFakeTime, runs in fake
// time.
func Check(root string) (findings []Finding, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case !d.IsDir():
			return nil
		}
		found, err := checkPackage(path)
		findings = append(findings, found...)
		return err
	})
	return findings, err
}

// checkPackage checks the tests in a folder.
func checkPackage(dir string) (findings []Finding, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	fset, constants := token.NewFileSet(), constants{}
	var files []*ast.File
	for _, path := range paths {
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		constants.add(file)
		if strings.HasSuffix(path, "_test.go") {
			files = append(files, file)
		}
	}
	for _, file := range files {
		lines, whole := excepted(fset, file)
		if whole || inFakeTime(file) {
			continue
		}
		c := checker{fset: fset, constants: constants, excepted: lines}
		ast.Inspect(file, c.visit)
		findings = append(findings, c.findings...)
	}
	return findings, nil
}

// inFakeTime reports whether a file imports testing/synctest, or calls check.InFakeTime or
// check.EachInFakeTime.
func inFakeTime(file *ast.File) (fake bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			fake = fake || n.Path.Value == `"testing/synctest"`
		case *ast.SelectorExpr:
			fake = fake || n.Sel.Name == "InFakeTime" || n.Sel.Name == "EachInFakeTime"
		}
		return !fake
	})
	return fake
}

// excepted returns the lines excepted by comments, and whether one excepts the file.
func excepted(fset *token.FileSet, file *ast.File) (lines map[int]bool, whole bool) {
	lines = map[int]bool{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if why, ok := strings.CutPrefix(c.Text, allowed); ok && strings.TrimSpace(why) != "" {
				line := fset.Position(c.Pos()).Line
				lines[line], lines[line+1] = true, true
				whole = whole || c.Pos() < file.Package
			}
		}
	}
	return lines, whole
}

// checker checks one file.
type checker struct {
	fset      *token.FileSet
	constants constants
	excepted  map[int]bool
	findings  []Finding
}

func (c *checker) report(n ast.Node, rule string) {
	if pos := c.fset.Position(n.Pos()); !c.excepted[pos.Line] {
		c.findings = append(c.findings, Finding{pos, rule})
	}
}

// below reports whether e is a constant duration of less than limit, and more than zero.
func (c *checker) below(e ast.Expr, limit time.Duration) bool {
	v := c.constants.value(e, nil)
	if v == nil {
		return false
	}
	d, exact := constant.Int64Val(constant.ToInt(v))
	return exact && d > 0 && time.Duration(d) < limit
}

func (c *checker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "TTL" && c.below(n.Value, minTTL) {
			c.report(n, fmt.Sprintf("a TTL below %v may end before the test is done with it", minTTL))
		}
	case *ast.CallExpr:
		switch name := called(n); {
		case slices.Contains(deadlines, name) && len(n.Args) >= 2 && c.below(n.Args[1], minDeadline):
			c.report(n, fmt.Sprintf("a deadline below %v may pass before the call is made", minDeadline))
		case name == "time.AfterFunc":
			c.report(n, "what is aimed by a clock misses: let an event trigger it")
		}
	case *ast.BinaryExpr:
		longer := n.Op == token.GTR || n.Op == token.GEQ
		if call, ok := n.X.(*ast.CallExpr); ok && longer && called(call) == "time.Since" {
			c.report(n, "no bound on how long something takes")
		}
	}
	return true
}

// called returns the function of a call, such as time.Since.
func called(n *ast.CallExpr) string {
	if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// constants are the constants of a package outside of functions, by name.
type constants map[string]ast.Expr

// add adds the constants of a file.
func (c constants) add(file *ast.File) {
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			if values, ok := spec.(*ast.ValueSpec); ok && len(values.Values) == len(values.Names) {
				for i, name := range values.Names {
					c[name.Name] = values.Values[i]
				}
			}
		}
	}
}

// declaration returns the expression of a constant's name, or nil.
func (c constants) declaration(name *ast.Ident) ast.Expr {
	if name.Obj == nil {
		return c[name.Name] // of another file
	}
	spec, ok := name.Obj.Decl.(*ast.ValueSpec)
	if !ok || name.Obj.Kind != ast.Con {
		return nil
	}
	for i, n := range spec.Names {
		if n.Name == name.Name && i < len(spec.Values) {
			return spec.Values[i]
		}
	}
	return nil
}

var units = map[string]time.Duration{
	"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// value returns the value of a constant expression, or nil. seen are the constants on the way.
func (c constants) value(e ast.Expr, seen []string) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return c.value(e.X, seen)
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "time" && units[e.Sel.Name] > 0 {
			return constant.MakeInt64(int64(units[e.Sel.Name]))
		}
	case *ast.Ident:
		if next := c.declaration(e); next != nil && !slices.Contains(seen, e.Name) {
			return c.value(next, append(seen, e.Name))
		}
	case *ast.BinaryExpr:
		x, y := c.value(e.X, seen), c.value(e.Y, seen)
		if x == nil || y == nil || x.Kind() == constant.String || y.Kind() == constant.String {
			return nil
		}
		op := e.Op
		switch {
		case op == token.QUO && constant.Sign(y) == 0:
			return nil
		case op == token.QUO && x.Kind() == constant.Int && y.Kind() == constant.Int:
			op = token.QUO_ASSIGN // of integers
		case op != token.ADD && op != token.SUB && op != token.MUL && op != token.QUO:
			return nil
		}
		return constant.BinaryOp(x, op, y)
	}
	return nil
}
