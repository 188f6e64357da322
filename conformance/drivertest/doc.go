// Package drivertest is the suite for adapters of Redis clients: implementations of [driver.Driver].
// It checks the demands in the documentation of package driver. One test runs it:
//
//	func TestDriver(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{
//			Dial: func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
//				client := myclient.Connect(target.Addrs[0], target.Username, target.Password)
//				tb.Cleanup(func() { client.Close() })
//				return myadapter.New(client)
//			},
//			Lacks: []drivertest.Feature{
//				drivertest.FeatureCluster, drivertest.FeatureSentinel, drivertest.FeatureTLS,
//			},
//		})
//	}
//
// A feature in Lacks must return errors.ErrUnsupported; all others must work. Package conformance is
// the suite for locks. Run it over the adapter too, with the same Dial and Lacks: it finds an
// adapter's effects on a whole lock.
//
// # Servers
//
// Run starts the servers. Miniredis needs nothing installed and always runs: in fake time, on a
// network in memory reached by Target.Dial. A harness without FeatureDial gets it over TCP and in
// real time instead. Real servers are started if the program redis-server is found, or the program
// named by the environment variable HOLDFAST_REDIS_SERVER: one server, a cluster of three masters,
// and a master watched by Sentinels. Without a program the cases on real servers are skipped; with
// CI=true they fail. -short leaves out clusters and Sentinels. Harness.On selects kinds of servers.
//
// # Run one case
//
// Each case is a subtest, named by its kind of server and its name:
//
//	go test -run 'TestDriver/memory/set_takes_a_free_key'
//
// A failed case logs why it exists, how to run it alone and, in fake time, its server's requests and
// answers with their times. If the command line selects no subtests, Run fails if a case did not run
// on one of its kinds of servers. The suite is not a load test and asserts no speed: its time limits
// only distinguish an answer from none.
//
// # How to read a case
//
// In the source, a case is an entry of a table and a function:
//
//	{
//		name: "set takes a free key", on: suite.AllKinds,
//		why: "SetNX is the whole acquire of an unfenced lock: it must store exactly the value, with an expiry",
//		run: setTakesFreeKey,
//	},
//
// why is the harm to users otherwise. on lists the kinds of servers, and needs the required features
// of the adapter. With own, the case gets a server of its own, since it restarts, freezes or
// reconfigures it.
//
// The function gets a caseT: a test with one server. Its methods are the steps of a case: t.Driver()
// makes a driver, t.Key() returns a key of no other case, t.Do(...) sends a command around the
// driver, t.Proxied() makes a driver behind a proxy that drops, cuts or holds back single requests
// and replies, and t.Eventually(...) polls with a deadline. A case asserts the commands executed by
// the server, whatever the driver reports. When it is over, no subscription and no connection may be
// left.
//
// Each file has the cases of one subject, such as eval.go and subscribe.go. mutant_test.go runs the
// suite on drivers with a flaw, and names the cases that must fail on each.
package drivertest
