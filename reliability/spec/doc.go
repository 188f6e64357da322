// Package spec has two TLA+ specs of the code: Lease.tla of one hold, Waiting.tla of the queue of
// waiters. README.md says what they model. It has tests only; `make spec` checks every
// configuration with TLC.
package spec
