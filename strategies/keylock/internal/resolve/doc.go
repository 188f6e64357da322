// Package resolve finds out what became of commands whose answer did not come, the same way for every strategy and client.
//
// [Sends] sends a command again while its outcome is unknown. [CleanUp] removes, in the background, what a command of
// unknown outcome may still bring about: a server that was frozen runs what it received in any order of connections, so
// that "not there" proves nothing while a send is open.
package resolve
