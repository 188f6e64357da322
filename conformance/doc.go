// Package conformance is the suite that every Redis client adapter (a [driver.Driver]) and every
// strategy of Holdfast passes. It can be run over any adapter:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness{
//			Dial: func(tb conformance.TB, target conformance.Target) (driver.Driver, error) {
//				client := myclient.Connect(target.Addrs[0], target.Username, target.Password)
//				tb.Cleanup(func() { client.Close() })
//				return myadapter.New(client)
//			},
//			Lacks: []conformance.Feature{
//				conformance.FeatureCluster, conformance.FeatureSentinel, conformance.FeatureTLS,
//			},
//		})
//	}
//
// What is not in Lacks must work; what is must return errors.ErrUnsupported. For a strategy, set
// Harness.New and Harness.Can, and Harness.LocksOnly if the adapter is proved elsewhere.
//
// # Servers
//
// The suite starts the servers: miniredis, which needs nothing installed, and real ones (one
// server, a cluster of three masters, a master watched by Sentinels, five independent masters) if
// the program redis-server is found or the environment variable HOLDFAST_REDIS_SERVER names
// another. Without a program the cases on real servers are skipped; with CI=true they fail. With
// -short, the cases that need a cluster, Sentinels or a quorum of real servers are left out.
// Harness.On selects kinds of servers.
//
// # How to read a case
//
// [Cases] lists the cases. In the source, a case is an entry of a table and a function:
//
//	{
//		name: "set takes a free key", on: anywhere,
//		why: "SetNX is the whole acquire of an unfenced lock: it must store exactly the value, with an expiry",
//		run: setTakesFreeKey,
//	},
//
// name is the name of the subtest, below the kind of server: miniredis/set_takes_a_free_key. why is
// logged when the case fails: it says what would go wrong for users. contract is the number of the
// contract in docs/contracts.md that the case proves; without one it is part of the adapter's
// contract, the documentation of package driver. on lists the kinds of servers, needs the features
// of the adapter, and can the capabilities of the strategy that the case needs. With own, the case
// gets a server of its own, since it restarts, freezes or reconfigures it.
//
// The function gets a caseT, which is a test with one server. Its methods read like the steps of
// the case: t.driver() dials an adapter, t.locker(drv) makes the strategy under test, t.key()
// returns a key that no other case uses, t.do(...) sends a command around the adapter, t.proxied()
// puts a proxy in front of the server that drops, cuts or holds back single requests and replies,
// and t.eventually(...) polls with a deadline. A case asserts what the server executed, whatever
// the adapter claims. When it is over, no subscription and no connection may be left, and no key of
// a lock but its fence counter.
//
// The files are grouped by what is tested: driver_*.go has the contract of adapters, lock_*.go the
// contracts of a lock, and quorum*.go those of a quorum. *_tools.go has the methods of caseT;
// mutant_*_test.go runs the suite on flawed adapters and algorithms, and names the cases that fail
// on each.
//
// # What is proved
//
// At the end of Run every case must have run on every kind of server that it names, unless the
// command line selected subtests. The suite is not a load test and asserts no speed: its time
// limits only distinguish an answer from none.
package conformance
