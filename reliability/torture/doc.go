// Command torture uses locks of all strategies on real Redis servers, from several processes and
// over go-redis, rueidis and redigo on the same names. Meanwhile it injects faults into servers, connections and
// processes. It checks every answer by package history. Package workload chooses the calls of the
// clients.
//
// A run consists of rounds. Each uses one topology (one server, a cluster, a cluster with replicas,
// five masters, Sentinels), starts the worker processes, and injects faults: of one kind, or
// several sequences at once. After a round no keys but fencing counters may be left. The seed fixes
// the rounds and their faults. It does not fix the timing, and so not how many calls clients make.
//
// In most rounds with single locks, the clients of one group share a chain in each process, and
// hand locks over to one another.
//
// Every fourth round has one trouble that must not spread: a server frozen for seconds, callers
// with hopeless deadlines, a log blocking in the callbacks of other locks. Bystanders in the same
// process keep watched locks and acquire others, over each provider and a network with latency.
// Those with a healthy server must lose no lock, get no error and keep half of their rate. All must
// return to 60 % of it soon afterwards. Pings beside them show whether the machine was too busy to
// judge rates.
//
// If a server may lose its state (a failover to an asynchronous replica, a restart without its
// data), a lost hold counts as a loss, not as a violation. Fencing tokens must still increase.
//
//	go run ./torture -seconds 600 [-seed n] [-out folder]
//	go run ./torture -seconds 30 -on "one server" -beside "log blocked"
//	go run ./torture -check folder/history.json
//
// The last line is "operations=N faults=N violations=N seed=N". The exit status is 1 after a
// violation; the run prints the folder with its history and picture. It is 2 if the run itself
// failed or proves too little: no round could be judged, a kind of lock was never held or never
// refused in many histories, or a check ran out of time.
package main
