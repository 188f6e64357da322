// Package conformance is the suite for locks. Every strategy of Holdfast passes it, and so can one
// of your own. It checks the contracts of [docs/contracts.md]. One test runs it:
//
//	func TestLocks(t *testing.T) {
//		conformance.Run(t, conformance.Harness{
//			Dial: dial, // as for drivertest.Run
//			New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
//				return mystrategy.New(drv, mystrategy.Config{AttemptTimeout: bound.Attempt})
//			},
//			Can: conformance.Capabilities{Shared: true},
//		})
//	}
//
// Without New, the suite runs strategies/single, and strategies/redlock over five servers: that
// tests an adapter with whole locks. Package drivertest is the suite for adapters, and documents
// which servers are started and how to run one case. Quorums of real servers run only with
// HOLDFAST_TEST=full in the environment.
//
// [RunAt] runs the cases without go test, on a server that is given and that others use too. The
// program cmd/holdfast does that.
//
// # How to read a case
//
// In the source, a case is an entry of a table and a function:
//
//	{
//		name: "renew never shortens", contract: 9, on: suite.WithoutSentinel,
//		why: "the lease would end before the Deadline that was reported",
//		run: renewNeverShortens,
//	},
//
// name is the name of the subtest, below the kind of server. contract is the number of the contract
// that the case proves. why says what would go wrong for users; it is logged when the case fails.
// on lists the kinds of servers, needs lists the features of the adapter, and can lists the
// capabilities of the strategy that the case requires. With own, the case gets a server of its own.
// With quorum, it runs on five independent servers.
//
// The function gets a caseT, which is a test with one server and the means to connect to it.
// t.direct() makes the lock under test over a client of its own, t.behind() makes it behind a proxy
// that drops, cuts or holds back single requests and replies, t.acquire(...) acquires or fails, and
// t.contended(...) demands that another holder is found. A case asserts what the server executed,
// whatever the lock reports. When it is over, no subscription, no connection and no key of a lock
// but its fence counter may be left.
//
// lock_*.go has the contracts of a lock, and quorum*.go those of a quorum. *_tools.go has the
// methods of caseT; those that it shares with drivertest are in internal/suite. mutant_*_test.go
// runs the suite on flawed algorithms, and names the cases that must fail on each.
//
// [docs/contracts.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/contracts.md
package conformance
