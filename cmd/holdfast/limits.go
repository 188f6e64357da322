package main

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// How long the program waits for servers. These are variables for the tests, which wait longer for
// an answer on a busy machine.
var (
	answerTimeout   = 5 * time.Second        // an answer
	connectTimeout  = 5 * time.Second        // the first answer; the default of --connect-timeout
	dialTimeout     = 3 * time.Second        // a connection
	attemptTimeout  time.Duration            // a send of a strategy; 0: its default
	readTimeout     time.Duration            // a reply, in a client; 0: its default
	closeTimeout    = time.Second            // the clean-up at the end; the rest expires
	probeTimeout    = time.Second            // the probe of a silent server
	completeTimeout = 500 * time.Millisecond // the scan for completions: a shell waits for it

	slowRoundTrip = locker.DefaultTTL / 100 // check warns of a longer one
)
