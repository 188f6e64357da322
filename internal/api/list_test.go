package api_test

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"
)

// list returns a line for each export of pkg: constants with their values, variables, functions,
// types, fields and methods. Names of parameters are left out.
func list(pkg *types.Package) (lines []string) {
	for _, name := range pkg.Scope().Names() {
		if !ast.IsExported(name) {
			continue
		}
		switch obj := pkg.Scope().Lookup(name).(type) {
		case *types.Const:
			lines = append(lines, fmt.Sprintf("const %s %s = %s", name, text(obj.Type()), obj.Val().ExactString()))
		case *types.Var:
			lines = append(lines, fmt.Sprintf("var %s %s", name, text(obj.Type())))
		case *types.Func:
			lines = append(lines, "func "+name+signature(obj.Signature()))
		case *types.TypeName:
			lines = append(lines, typeLines(obj)...)
		}
	}
	for i, line := range lines {
		lines[i] = "pkg " + strings.TrimPrefix(pkg.Path(), "github.com/holdfast-go/") + ", " + line
	}
	return lines
}

// typeLines returns the lines of a type, with its fields and methods. Those of an alias are listed
// with its type, unless the type is in an internal package.
func typeLines(obj *types.TypeName) (lines []string) {
	name, t := obj.Name(), obj.Type()
	if obj.IsAlias() {
		t = types.Unalias(t)
		lines = append(lines, fmt.Sprintf("type %s = %s", name, text(t)))
		if named, ok := t.(*types.Named); !ok || named.Obj().Pkg() == nil || !isInternal(named.Obj().Pkg().Path()) {
			return lines
		}
	}
	if named, ok := t.(*types.Named); ok {
		name += typeParams(named.TypeParams())
	}
	kind := text(t.Underlying())
	switch u := t.Underlying().(type) {
	case *types.Struct:
		kind = "struct"
		for f := range u.Fields() {
			switch {
			case f.Embedded():
				lines = append(lines, fmt.Sprintf("type %s struct, embedded %s", name, text(f.Type())))
			case f.Exported():
				lines = append(lines, fmt.Sprintf("type %s struct, %s %s", name, f.Name(), text(f.Type())))
			}
		}
	case *types.Interface:
		kind = "interface"
		for m := range u.Methods() {
			lines = append(lines, fmt.Sprintf("type %s interface, %s%s", name, m.Name(), signature(m.Signature())))
		}
		return append(lines, fmt.Sprintf("type %s %s", name, kind))
	}
	value := types.NewMethodSet(t)
	for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		f, ok := m.Obj().(*types.Func)
		if !ok || !f.Exported() {
			continue
		}
		receiver := "*" + name
		if value.Lookup(f.Pkg(), f.Name()) != nil {
			receiver = name
		}
		lines = append(lines, fmt.Sprintf("method (%s) %s%s", receiver, f.Name(), signature(f.Signature())))
	}
	return append(lines, fmt.Sprintf("type %s %s", name, kind))
}

// signature returns the type parameters, parameters and results of a function.
func signature(s *types.Signature) string {
	params, results := tuple(s.Params()), tuple(s.Results())
	if last := len(params) - 1; s.Variadic() {
		params[last] = "..." + strings.TrimPrefix(params[last], "[]")
	}
	out := typeParams(s.TypeParams()) + "(" + strings.Join(params, ", ") + ")"
	switch len(results) {
	case 0:
		return out
	case 1:
		return out + " " + results[0]
	default:
		return out + " (" + strings.Join(results, ", ") + ")"
	}
}

func tuple(vars *types.Tuple) (list []string) {
	for v := range vars.Variables() {
		list = append(list, text(v.Type()))
	}
	return list
}

func typeParams(params *types.TypeParamList) string {
	var list []string
	for p := range params.TypeParams() {
		list = append(list, p.Obj().Name()+" "+text(p.Constraint()))
	}
	if list == nil {
		return ""
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// text returns a type, with packages by their names.
func text(t types.Type) string {
	if s, ok := t.(*types.Signature); ok {
		return "func" + signature(s)
	}
	return types.TypeString(t, (*types.Package).Name)
}
