// Package machines walks at random over each strategy and compares it, after every step, with a
// model in plain Go. It has tests only.
//
// A machine acquires, renews, converts, releases, resumes, lets time pass, loses answers, restarts
// the server empty and has foreign libraries at the key. The model knows the holder and the end of
// its hold, by the server's clock and by the holder's. Compared are the Lock's state (Err, Done,
// Deadline, Mode, Fence), the results of Inspect, the keys and expiries at the server, and the
// order of the fencing tokens. Each walk is in a testing/synctest bubble, with a miniredis and one
// of the three clients.
//
// Another machine walks over a quorum of three servers. Each node fails, goes down, restarts empty
// and has foreign libraries for itself. Its model knows less: a Lock may report itself held while a
// quorum of nodes has it, an operation decided by the healthy nodes has their result, and after the
// faults end no node has a key without a holder.
//
// A failure is shrunk by pgregory.net/rapid and shown as a script, a line for each step. More walks
// than the default:
//
//	go test ./machines -rapid.checks 10000
//
// A failing walk prints the -rapid.failfile to repeat it with.
package machines
