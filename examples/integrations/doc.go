// Package integrations has examples of programs and libraries that lock with Holdfast through an
// interface of their own. Each is a package of one file to copy, with tests against a Redis server;
// if the other project exports tests of its own for that interface, they run too. This is a module
// of its own: nobody needs to import it. [docs/integrations.md] explains each example.
//
// [docs/integrations.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/integrations.md
package integrations
