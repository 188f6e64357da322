// Command torture runs locks of all strategies on real Redis servers, by the three providers mixed
// on the same names, from several processes, while servers, connections and processes are
// disturbed, and checks every answer (package history). What the clients do is package workload.
//
// A run is a row of rounds. Each takes one topology (one server, a cluster, one whose masters have
// replicas, five masters, Sentinels), starts the worker processes, and lets faults loose on them:
// one kind alone or several sequences at once. At its end no key may be left but fencing counters.
// The seed fixes the rounds and the faults of each, not the timing, on which it depends how far
// clients get.
//
// In most rounds with single locks one group of clients shares a chain in each process, and they
// hand locks over to each other.
//
// Every fourth round has one trouble that must not spread, and bystanders in the process that it
// happens in: a server frozen for seconds, callers with hopeless deadlines, a log that blocks in
// the callbacks of other locks. Bystanders keep watched locks and acquire others over a network
// with latency, by each provider. Those whose server is healthy must lose no lock, get no error and
// keep half of their rate, and all must soon be back to 60 % of it. Pings beside them show whether
// the machine was too busy to judge that by.
//
// What a server loses that may lose its state (a failover to an asynchronous replica, a restart
// without its data) is counted as a loss and not as a violation; fencing tokens must grow through
// it all the same.
//
//	go run ./torture -seconds 600 [-seed n] [-out folder]
//	go run ./torture -seconds 30 -on "one server" -beside "log blocked"
//	go run ./torture -check folder/history.json
//
// The last line is "operations=N faults=N violations=N seed=N". The exit status is 1 after a
// violation, whose history and picture stand in the folder that the run names, and 2 where the run
// itself failed or proves too little: no round could be judged, a kind of lock was never held or
// never refused in many histories, a check ran out of time.
package main
