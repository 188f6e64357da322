// Package faultproxy is a proxy for tests. It stands before a Redis server (or miniredis) and
// disturbs the request or the reply of one chosen command. It works over TCP, and in bubbles of
// testing/synctest over package memnet.
//
// A Rule chooses a command and a fault. Proxy.Add returns its Trap: channels closed when the fault
// happens, so no test sleeps. The proxy reads the RESP2 and RESP3 framing of both directions and
// pairs each reply with its request: on a pipelined connection exactly the chosen one is disturbed.
// Unrequested messages, as of Pub/Sub and client tracking, are passed on and never counted as
// replies.
//
// Like a network, the proxy without a Filter never reorders the messages in one direction of one
// connection, and never leaves a gap: after a stalled or dropped message all others wait, or are
// lost, with it.
//
// Not supported, because replies cannot be paired: TLS, CLIENT REPLY OFF or SKIP and MONITOR. A
// connection with broken framing is cut. When the server is down, a client's connection is not
// refused but ends at once. Proxy.Refuse refuses connections.
package faultproxy
