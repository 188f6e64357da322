// Package recipes has the code of [docs/recipes.md] as examples and tests. It exports nothing: copy
// what you need. It is a module of its own, because some recipes need a database or another lock
// library.
//
// [docs/recipes.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/recipes.md
package recipes
