// Package interop tests that strategies/single and strategies/redisson share a name with lock
// libraries of other languages: each excludes the other, and neither ends a hold of the other.
//
// A peer is a process with one library and a line protocol: package peer has its commands. Package
// install downloads the libraries, pinned by the files of each language, once into the user's cache.
// A test of a peer without its runtime is skipped; with CI=true it fails.
//
// The tests run in `make test-all`. With -update they write the table of [docs/migration.md].
//
// [docs/migration.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/migration.md
package interop
