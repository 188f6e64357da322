// Package redistest starts real Redis servers for tests: one server, a cluster
// of masters, a master watched by Sentinels, or several independent masters.
//
// Each server is a process of its own on 127.0.0.1, with a free port, a temporary folder and a log,
// shown if the test fails. It is ready when its start function returns, and gone, folder and all,
// after Close; Start and its siblings call Close from the test's Cleanup. On Linux a server also
// dies with the test process: a timed-out test leaves no more than folders behind.
//
// The server is the program redis-server, or the one named by the environment variable
// HOLDFAST_REDIS_SERVER (valkey-server, say). Without it, tests are skipped, but fail if the
// environment says CI=true: no CI passes by skipping.
//
// An act on a server is complete when the method returns: after Kill the process is gone, after
// Freeze it runs no more. Nothing is guaranteed about data over a Restart unless the server has
// `--appendonly yes`.
package redistest
