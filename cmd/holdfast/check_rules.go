package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// findings judges the facts for the locks of a target.
func (s *facts) findings(t target, quorum bool) []finding {
	var found []finding
	if s.infoErr != nil {
		found = append(found, unknown("info", "the server's version, eviction, persistence and role could not be checked: %v. "+
			"A user with +info can.", s.infoErr))
	} else {
		found = append(found, s.version(), s.eviction(), s.memory(), s.persistence(quorum), s.saving(), s.replication(quorum),
			s.topology(t.kind), s.clients())
	}
	found = append(found, s.sentinels...)
	if s.configErr != nil {
		found = append(found, unknown("config", "the settings appendfsync, min-replicas-to-write, timeout and others could not be "+
			"checked: %v. A user with +config|get can; some providers of servers allow it to nobody.", s.configErr))
	}
	found = append(found, s.idle(), s.pubsub(), s.latency(), s.clock(), login(t))
	var all []finding
	for _, f := range found {
		if f.Check != "" {
			all = append(all, f.at(s.addr))
		}
	}
	return all
}

// version checks README's list of supported servers.
func (s *facts) version() finding {
	const advice = "Use Redis 6.2 or later, or Valkey 7.2 or later."
	redis := s.info["redis_version"]
	switch {
	case s.info["dragonfly_version"] != "":
		return warning("version", "Run holdfast conformance on it before you rely on it.",
			"Dragonfly %s is not among the servers that are tested", s.info["dragonfly_version"])
	case s.info["mvcc_depth"] != "" || strings.EqualFold(s.info["variant"], "keydb"):
		return warning("version", "Run holdfast conformance on it before you rely on it.",
			"KeyDB %s is not among the servers that are tested", redis)
	case s.info["server_name"] == "valkey" && s.info["valkey_version"] != "":
		return passed("version", "Valkey %s", s.info["valkey_version"])
	case redis == "":
		return unknown("version", "the server does not say which it is: it may not be Redis or Valkey")
	case olderThan(redis, 6, 2):
		return problem("version", advice, "Redis %s lacks commands that some scripts of locks call", redis)
	default:
		return passed("version", "Redis %s", redis)
	}
}

// olderThan reports whether a version such as "7.0.15" is older than major.minor.
func olderThan(version string, major, minor int) bool {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return false
	}
	gotMajor, err1 := strconv.Atoi(parts[0])
	gotMinor, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (gotMajor < major || gotMajor == major && gotMinor < minor)
}

func (s *facts) eviction() finding {
	const advice = "Set maxmemory-policy noeviction, or use a server of its own for locks."
	policy := s.info["maxmemory_policy"]
	switch {
	case policy == "":
		return unknown("eviction", "the server does not say what it does when its memory is full; it must not evict locks")
	case policy == "noeviction":
		return passed("eviction", "maxmemory-policy is noeviction: no lock is evicted")
	case s.info["maxmemory"] == "0":
		return warning("eviction", advice,
			"maxmemory-policy is %s: once maxmemory is set, locks may be evicted while they are held", policy)
	default:
		return problem("eviction", advice,
			"maxmemory-policy is %s: when the memory is full, locks may be evicted while they are held, and others get them", policy)
	}
}

func (s *facts) memory() finding {
	limit, used := s.number("maxmemory"), s.number("used_memory")
	if limit == 0 || s.info["maxmemory_policy"] != "noeviction" {
		return finding{}
	}
	percent := used * 100 / limit
	if percent >= 90 {
		return warning("memory", "Give the server more memory, or find out what fills it.",
			"%d %% of maxmemory are in use: a full server refuses locks (OOM)", percent)
	}
	return passed("memory", "%d %% of maxmemory are in use", percent)
}

func (s *facts) persistence(quorum bool) finding {
	const check = "persistence"
	advice := "To keep locks over a crash: appendonly yes and appendfsync always. Work that must not overlap needs fencing tokens anyway."
	lost := "a crash or a restart loses the locks, and others get them at once"
	if quorum {
		advice = "Set appendonly yes and appendfsync always, or keep a node that crashed away for as long as the longest TTL."
		lost = "a node that restarts has lost its locks, and two may hold one lock at a quorum"
	}
	fsync := s.config["appendfsync"]
	switch {
	case s.info["aof_enabled"] == "":
		return unknown(check, "the server does not say whether it keeps its data over a crash")
	case s.info["aof_enabled"] != "1":
		return warning(check, advice, "appendonly is no: %s", lost)
	case fsync == "":
		return unknown(check, "appendonly is yes, but appendfsync could not be read: unless it is always, a crash loses the latest locks")
	case fsync != "always":
		return warning(check, advice, "appendfsync is %s: a crash loses the locks of the last seconds, and others get them", fsync)
	default:
		return passed(check, "appendonly is yes and appendfsync always: locks survive a crash")
	}
}

// saving checks whether the server can write its files: it may refuse writes otherwise.
func (s *facts) saving() finding {
	const advice = "Look at the server's log and disk."
	switch {
	case s.info["aof_enabled"] == "1" && s.info["aof_last_write_status"] == "err":
		return problem("saving", advice, "the server cannot write its append-only file, and refuses locks (MISCONF)")
	case s.info["rdb_last_bgsave_status"] == "err":
		return warning("saving", advice, "the last snapshot failed: unless stop-writes-on-bgsave-error is no, the server refuses locks (MISCONF)")
	default:
		return finding{}
	}
}

func (s *facts) replication(quorum bool) finding {
	const check = "replicas"
	replicas := s.number("connected_slaves")
	switch {
	case s.info["role"] == "slave":
		return problem(check, "Name the master in the URL, or the Sentinels by redis+sentinel://.",
			"the server is a replica of %s:%s: it refuses locks (READONLY)", s.info["master_host"], s.info["master_port"])
	case replicas > 0 && quorum:
		return warning(check, "Make no replica a master: bring the node itself back, with its data or after the longest TTL.",
			"the node has %d replicas: one that takes over without a lock lets two hold it at a quorum", replicas)
	case replicas > 0:
		minimum := s.config["min-replicas-to-write"]
		advice := "Use MinReplicas of the strategy, fencing tokens, or a quorum of servers (docs/choosing.md)."
		if minimum == "0" {
			advice += " Set min-replicas-to-write 1, so that a master that is cut off stops granting locks."
		}
		return warning(check, advice,
			"the server has %d replicas: one that takes over without a lock lets a second holder in", replicas)
	default:
		return passed(check, "no replica is connected: no failover loses locks")
	}
}

func (s *facts) topology(k kind) finding {
	const check = "cluster"
	enabled := s.info["cluster_enabled"] == "1"
	switch {
	case enabled && k != cluster:
		return problem(check, "Use redis+cluster:// in the URL.",
			"the server is a node of a Cluster, and refuses names of other nodes (MOVED)")
	case !enabled && k == cluster:
		return problem(check, "Use redis:// in the URL.", "the server is not part of a Cluster")
	case !enabled:
		return finding{}
	case s.cluster["cluster_state"] != "ok":
		return problem(check, "See CLUSTER NODES on this server.",
			"the Cluster's state is %q, with %s of 16384 slots served: names may be refused (CLUSTERDOWN)",
			s.cluster["cluster_state"], s.cluster["cluster_slots_ok"])
	}
	switch s.config["cluster-require-full-coverage"] {
	case "yes":
		return warning(check, "Set cluster-require-full-coverage no if the names of the other masters shall go on.",
			"cluster-require-full-coverage is yes: when one master is lost, no name can be locked")
	case "no":
		return passed(check, "the Cluster serves all slots; when one master is lost, only its names cannot be locked")
	default:
		return passed(check, "the Cluster serves all slots")
	}
}

// sentinelFinding checks a Sentinel's reply about its master.
func sentinelFinding(state map[string]string) finding {
	const check = "sentinel"
	others, _ := strconv.Atoi(state["num-other-sentinels"])
	replicas, _ := strconv.Atoi(state["num-slaves"])
	switch {
	case state["flags"] != "master":
		return problem(check, "See the log of the Sentinels.", "Sentinel says of the master: %s", state["flags"])
	case replicas == 0:
		return warning(check, "Add a replica.", "the master has no replica: when it is lost, nothing takes over")
	case others < 2:
		return warning(check, "Run three Sentinels or more, on machines of their own.",
			"the master has %d Sentinels: when one of them is lost, no failover can be decided", others+1)
	default:
		return passed(check, "%d Sentinels watch the master and its %d replicas; %s decide that it is down",
			others+1, replicas, state["quorum"])
	}
}

func (s *facts) clients() finding {
	limit, connected := s.number("maxclients"), s.number("connected_clients")
	if limit == 0 || connected*100 < limit*90 {
		return finding{}
	}
	return warning("clients", "Raise maxclients, or find out who connects so often.",
		"%d of %d clients are connected: the server refuses more, and so locks", connected, limit)
}

func (s *facts) idle() finding {
	seconds, err := strconv.Atoi(s.config["timeout"])
	if err != nil || seconds == 0 || seconds >= 60 {
		return finding{}
	}
	return warning("timeout", "Set timeout 0, or a minute or more.",
		"the server closes connections that are idle for %d s: the next command on one fails and is sent again, which takes longer", seconds)
}

// pubsub checks the output buffer limit for subscribers.
func (s *facts) pubsub() finding {
	_, rest, has := strings.Cut(s.config["client-output-buffer-limit"], "pubsub ")
	words := strings.Fields(rest)
	if !has || len(words) < 2 {
		return finding{}
	}
	const little = 64 << 10
	for _, word := range words[:2] {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil && n > 0 && n < little {
			return warning("pubsub", "Set client-output-buffer-limit pubsub 32mb 8mb 60, as by default.",
				"client-output-buffer-limit pubsub is %d bytes: busy subscribers are cut off, and waiters poll meanwhile", n)
		}
	}
	return finding{}
}

// latency checks the round trip: the default TTL should be at least a hundred of them
// (docs/choosing.md).
func (s *facts) latency() finding {
	switch {
	case s.roundTrip == 0:
		return unknown("latency", "the round trip could not be measured: %v", s.clockErr)
	case s.roundTrip > slowRoundTrip:
		return warning("latency", fmt.Sprintf("Use a --ttl of at least %s, or a server that is nearer.", (100*s.roundTrip).Round(time.Second)),
			"a round trip takes %s: the default TTL of %s is less than a hundred of them", rounded(s.roundTrip), locker.DefaultTTL)
	default:
		return passed("latency", "a round trip takes %s", rounded(s.roundTrip))
	}
}

// clock compares the clocks. Leases need clocks of equal rate, not of equal time.
func (s *facts) clock() finding {
	const check, most = "clock", 10 * time.Second
	switch {
	case s.clockErr != nil || s.roundTrip == 0:
		return unknown(check, "the server's clock could not be read: %v", s.clockErr)
	case s.ahead.Abs() > most:
		return warning(check, "Synchronize both clocks, without steps.",
			"the clocks of the server and of this machine are %s apart: one is not synchronized, and may be stepped, which ends leases early",
			rounded(s.ahead.Abs()))
	default:
		return passed(check, "the clocks of the server and of this machine are %s apart", rounded(s.ahead.Abs()))
	}
}

// login checks whether others can log in without a password.
func login(t target) finding {
	if t.password != "" || t.network == "unix" {
		return finding{}
	}
	for _, addr := range t.addrs {
		host, _, _ := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return warning("login", "Give programs users of their own, with the rules of SECURITY.md.",
				"the server lets this machine in without a password: whoever reaches it can end any hold")
		}
	}
	return finding{}
}

// quorumFindings checks the nodes of a quorum together. all has the facts of those that answered.
func quorumFindings(targets []credentials, all []facts) []finding {
	n := len(targets)
	need := n/2 + 1
	var found []finding
	switch {
	case len(all) < need:
		found = append(found, problem("quorum", "Bring nodes back.", "%d of %d nodes answer, and a quorum needs %d", len(all), n, need))
	case n == 2:
		found = append(found, warning("quorum", "Use three nodes or five.", "of 2 nodes both are needed: the loss of either stops all locks"))
	case n%2 == 0:
		found = append(found, warning("quorum", fmt.Sprintf("Use %d nodes or %d.", n-1, n+1),
			"%d nodes survive the loss of %d, as %d nodes do", n, n-need, n-1))
	default:
		found = append(found, passed("quorum", "%d of %d nodes answer; %d may be lost", len(all), n, n-need))
	}
	for _, t := range targets {
		if t.kind == cluster || t.kind == sentinel {
			found = append(found, warning("quorum", "Name single servers by --nodes.",
				"a node is a Cluster or has Sentinels: a failover there may lose locks that the quorum counts on"))
			break
		}
	}
	byRun, byHost := map[string]string{}, map[string]string{}
	for _, s := range all {
		id := s.info["run_id"]
		if other := byRun[id]; id != "" && other != "" {
			found = append(found, problem("quorum", "Name each server once.",
				"%s and %s are the same server: its loss counts twice", other, s.addr))
		}
		byRun[id] = s.addr
		host, _, _ := net.SplitHostPort(s.addr)
		if other := byHost[host]; host != "" && other != "" {
			found = append(found, warning("quorum", "Use a machine for each node.",
				"%s and %s are on one machine, and may be lost together", other, s.addr))
		}
		byHost[host] = s.addr
	}
	return found
}

// rounded returns a duration as people read it.
func rounded(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	default:
		return d.Round(10 * time.Millisecond).String()
	}
}
