// Package machines walks at random over each strategy and compares it, after every step, with a
// model in plain Go. It has tests only.
//
// A machine acquires, renews, converts, releases, resumes, lets time pass, loses answers, restarts
// the server empty and has foreign libraries at the key. The model knows who holds until when, by
// the server's clock and by the holder's. Compared are what a Lock says (Err, Done, Deadline, Mode,
// Fence), what Inspect says, the keys and expiries at the server, and the order of the fencing
// tokens. Time is that of a testing/synctest bubble, the server a miniredis in it, the client one
// of the three.
//
// Another machine walks over a quorum of three servers, whose nodes fail, go down, restart empty
// and have foreign libraries each for itself. Its model knows less: a Lock may say that it is held
// as long as a quorum of nodes has it, what the healthy nodes decide is decided so, and once all is
// calm no node keeps a key of whom does not hold.
//
// A failure is shrunk by pgregory.net/rapid and shown as a script, a line for each step. More walks
// than the default:
//
//	go test ./machines -rapid.checks 10000
//
// A failing walk is repeated with the -rapid.failfile that it names.
package machines
