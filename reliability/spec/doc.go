// Package spec has two TLA+ specs of the code: Lease.tla of one hold, Waiting.tla of the queue of
// waiters. README.md describes the models. It has tests only; `make spec` checks every
// configuration with TLC.
package spec
