// Package peer runs a lock library in a process of its own.
//
// A peer reads one command a line, and answers each with one line. Durations are in milliseconds:
//
//	acquire NAME TTL WAIT [TOKEN]   one attempt if WAIT is 0; the library's own pauses otherwise
//	renew NAME TTL                  to the full TTL
//	release NAME                    what the last acquire of NAME returned
//	hammer NAME TTL UNTIL [PAUSE]   cycles until a Unix time; INCR and DECR of inside:NAME are the
//	                                critical section, and an INCR to more than 1 is a violation.
//	                                Peers in Go pause behind each cycle
//	reset                           what deletes every lock, if the library has it
//
// It prints "ready" first. An answer is "BEGIN END OUTCOME TEXT": Unix times of the call in
// microseconds; "ok", "no" for a refusal or a lost lock, or "error"; and the cycles,
// violations and longest wait of a hammer, or the text of the error. A peer ends when its input does.
package peer
