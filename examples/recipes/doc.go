// Package recipes has the code of docs/recipes.md as examples that are run as tests. It exports
// nothing: copy what you need.
package recipes
