// Package faultproxy is a proxy for tests that stands before a Redis server
// (or miniredis) and disturbs the request or the reply of one chosen command. It
// works over TCP, and in bubbles of testing/synctest over package memnet.
//
// A Rule says which command is meant and what happens to it; the Trap that
// Proxy.Add returns for it tells by events, not by sleeping, when it happened.
// The proxy reads the RESP2 and RESP3 framing of both directions and pairs each
// reply with its request, so that on a pipelined connection exactly the chosen
// one is disturbed. Messages that no request asked for, as of Pub/Sub and client
// tracking, are passed on and never counted as replies.
//
// Like a network, the proxy never reorders what goes in one direction of one
// connection, and never leaves a gap: what follows a stalled or dropped message
// waits, or is lost, with it.
//
// Not supported, because replies cannot be paired: TLS, CLIENT REPLY OFF or SKIP
// and MONITOR. A connection with broken framing is cut.
// When the server is down, clients see a connection that ends at once and not one
// that is refused; for that there is Proxy.Refuse.
package faultproxy
