// Package resolve finds out the outcome of unanswered commands, and cleans up.
//
// [Sends] resends a command while its outcome is unknown. [CleanUp] removes, in the background, the
// possible hold of such a command. A frozen server later runs the commands of its connections in
// any order, so "not there" proves nothing while a send is open.
package resolve
