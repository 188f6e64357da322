// Package conformance is the suite that every Redis client adapter (a [driver.Driver]) and every strategy of Holdfast
// passes. Anyone can run it over an adapter of their own:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness{
//			Dial: func(tb conformance.TB, target conformance.Target) (driver.Driver, error) {
//				client := myclient.Connect(target.Addrs[0], target.Username, target.Password)
//				tb.Cleanup(func() { client.Close() })
//				return myadapter.New(client)
//			},
//			Lacks: []conformance.Feature{conformance.FeatureCluster, conformance.FeatureSentinel, conformance.FeatureTLS},
//		})
//	}
//
// What is not in Lacks must work; what is must answer errors.ErrUnsupported. The suite owns the servers: miniredis, which
// needs nothing, and real ones (one server, a cluster of three masters, a master watched by Sentinels, five masters that share
// nothing) where the program redis-server is found or the environment variable HOLDFAST_REDIS_SERVER names another. Where there is none those cases
// are skipped, but fail if the environment says CI=true. With -short, the cases that need a cluster, Sentinels or a
// quorum of real servers are left out. Harness.On picks among the kinds of servers.
//
// # What is proved
//
// [Cases] lists the cases. Each has a name, the contract of docs/DESIGN.md that it proves, and a sentence that says why;
// the driver's own contract is the documentation of package driver. At the end of Run every case must have run on every
// kind of server that it names, unless the command line chose among the subtests.
//
// The suite speaks to the servers around the driver too, and puts a proxy in between that drops, cuts or holds back single
// requests and replies. So it knows what was executed, whatever the driver says. It is not a load test and asserts no
// speed: its time limits only tell an answer from none.
package conformance
