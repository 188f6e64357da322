// Package arrows holds the test that reads the module's import graph: what a program links when it
// imports a part of Holdfast, with everything that comes with it. The linter looks at single
// imports; this looks at their sum.
package arrows
