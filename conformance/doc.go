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
// Without New, the suite tests an adapter with whole locks: strategies/single, and
// strategies/redlock over five servers. Package drivertest is the suite for adapters, and documents
// the servers to be started and how to run one case. Quorums of real servers run only with
// HOLDFAST_TEST=full in the environment.
//
// [RunAt] runs the cases without go test, on an existing server that others may use. The program
// cmd/holdfast calls it.
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
// name is the name of the subtest, below the kind of server. contract is its number in
// [docs/contracts.md]. why is the harm to users otherwise; it is logged when the case fails. on
// lists the kinds of servers, needs the required features of the adapter, and can selects the
// strategies by their capabilities. With own, the case gets a server of its own. With quorum, it
// runs on five independent servers.
//
// The function gets a caseT: a test with one server and the means to connect to it. t.direct() makes
// the lock under test over a client of its own, t.behind() makes it behind a proxy that drops, cuts
// or holds back single requests and replies, t.acquire(...) acquires or fails, and t.contended(...)
// demands another holder. A case asserts the commands executed by the server, whatever the lock
// reports. When it is over, no subscription, no connection and no key of a lock but its fence
// counter may be left.
//
// quorum*.go has the contracts of a quorum, and each other file a subject of the contracts of a
// lock. *_tools.go has the methods of caseT, and internal/suite those shared with drivertest.
// mutant_*_test.go runs the suite on flawed algorithms, and names the cases that must fail on each.
//
// [docs/contracts.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/contracts.md
package conformance
