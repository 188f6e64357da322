// Package resolve finds out what became of commands whose reply did not arrive, and cleans up.
//
// [Sends] resends a command while its outcome is unknown. [CleanUp] removes, in the background,
// what a command of unknown outcome may still create. A server that was frozen runs what it
// received in any order of connections, so "not there" proves nothing while a send is open.
package resolve
