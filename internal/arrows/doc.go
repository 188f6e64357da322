// Package arrows holds the test that reads the module's import graph: everything a program links
// when it imports a part of Holdfast. The linter looks at single imports; this test looks at their
// sum.
package arrows
