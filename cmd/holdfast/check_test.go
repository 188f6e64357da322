//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// runCheck runs the check, and returns its findings of all servers by topic.
func runCheck(t *testing.T, env []string, args ...string) (found map[string]finding, status int) {
	t.Helper()
	out, errs, status := run(t, env, append([]string{"check", "--json"}, args...)...)
	found = map[string]finding{}
	for line := range strings.Lines(out) {
		var f finding
		check.Must(t, json.Unmarshal([]byte(line), &f))
		found[f.Check] = f
	}
	if len(found) == 0 || errs != "" {
		t.Errorf("it prints %q, and on standard error %q", out, errs)
	}
	return found, status
}

// A finding is one line, even if its text has several.
func TestFindingIsOneLine(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	check.OK(t, problem("strategy single", "", "%s", "one\ntwo").print(&b, false, 0)) //nolint:forbidigo // not the print of Go
	check.Equal(t, "finding", b.String(), "problem  strategy single: one; two\n")
}

// At a terminal a finding is wrapped between words. A word longer than the line is kept.
func TestFindingIsWrapped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 50)
	for _, test := range []struct {
		width int
		want  string
	}{
		{40, "" +
			"problem  h:1  eviction: locks may be\n" +
			"         evicted while they are held\n" +
			"         Set noeviction.\n"},
		{20, "" +
			"problem  h:1  eviction:\n" +
			"         locks may\n" +
			"         be evicted\n" +
			"         while they\n" +
			"         are held\n" +
			"         Set\n" +
			"         noeviction.\n"},
		{1000, "problem  h:1  eviction: locks may be evicted while they are held\n         Set noeviction.\n"},
	} {
		var b strings.Builder
		f := problem("eviction", "Set noeviction.", "locks may be evicted while they are held").at("h:1")
		if err := f.print(&b, false, test.width); err != nil || b.String() != test.want {
			t.Errorf("width %d:\n%s%v\nwant\n%s", test.width, b.String(), err, test.want)
		}
	}
	check.Equal(t, "a word that is too long", wrap("* ", "ab "+long+" cd", "  ", 20), "* ab\n  "+long+"\n  cd\n")
}

// A signal ends check while a server does not answer.
func TestCheckInterrupted(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, shared.Get(t).Addr())
	proxy.Freeze()
	nodes := "HOLDFAST_NODES=redis://" + shared.Get(t).Addr() + ",redis://" + proxy.Addr()
	p := begin(t, []string{nodes}, "check", "--connect-timeout", "1h")
	p.line(t)
	p.terminate(t)
}

// TestCheck finds each server's faults, and leaves no key there.
func TestCheck(t *testing.T) {
	t.Parallel()
	durable := []string{"--appendonly", "yes", "--appendfsync", "always"}
	start := func(args ...string) *redistest.Server {
		return redistest.Start(t, redistest.Options{Args: append(slices.Clone(durable), args...)})
	}
	good := start("--maxmemory", "100mb")
	evicts := start("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru", "--timeout", "5")
	plain := redistest.Start(t, redistest.Options{Password: "sesame"})
	frozen := faultproxy.Start(t, good.Addr())
	frozen.Freeze()
	for user, rules := range map[string][]any{
		"noscripts":   {"~*", "&*", "+@all", "-eval", "-evalsha"},
		"nochannels":  {"~*", "resetchannels", "+@all"},
		"nopublish":   {"~*", "&*", "+@all", "-publish"},
		"nofence":     {"~fix:*", "~{fix:*}:waiters", "&*", "+@all"},
		"nosettings":  {"~*", "&*", "+@all", "-config"},
		"noinfo":      {"~*", "&*", "+@all", "-info", "-time"},
		"nothingelse": {"~lock:*", "~{lock:*}:fence", "~{lock:*}:waiters", "&{lock:*}:wake*", "+@all"},
	} {
		good.MustCommand(t, append([]any{"ACL", "SETUSER", user, "on", ">sesame"}, rules...)...)
	}
	good.MustCommand(t, append(append([]any{"ACL", "SETUSER", "redisson"}, rule(t, "redisson")...), "+info", "+config|get")...)
	as := func(user string) []string { return at(user + ":sesame@" + good.Addr()) }
	type test struct {
		env    []string
		args   []string
		want   map[string]level // of findings other than ok
		says   string           // in the text of one of them
		status int
	}
	check.Each(t, map[string]test{
		"good":                    {env: at(good.Addr())},
		"good, of another prefix": {env: at(good.Addr()), args: []string{"--prefix", "p:", "--strategy", "semaphore:3"}},
		"evicts": {env: at(evicts.Addr()), status: 1,
			want: map[string]level{"eviction": levelProblem, "timeout": levelWarning}, says: "allkeys-lru"},
		"keeps nothing": {env: at(":sesame@" + plain.Addr()), status: 2,
			want: map[string]level{"persistence": levelWarning}, says: "appendonly is no"},
		"wrong password": {env: at(":guess@" + plain.Addr()), status: statusDenied,
			want: map[string]level{"connection": levelProblem}, says: "refused the login"},
		"no password": {env: at(plain.Addr()), status: statusDenied,
			want: map[string]level{"connection": levelProblem}, says: "refused the login"},
		"no server": {env: at("127.0.0.1:1"), status: statusUnreachable,
			want: map[string]level{"connection": levelProblem}, says: "no answer from 127.0.0.1:1"},
		"a silent server": {env: append(at(frozen.Addr()), withItsLimits), args: []string{"--connect-timeout", "300ms"}, status: statusUnreachable,
			want: map[string]level{"connection": levelProblem}, says: "no answer"},
		"no scripts": {env: as("noscripts"), args: []string{"--strategy", "reentrant"}, status: 1,
			want: map[string]level{"strategy reentrant": levelProblem}, says: "NOPERM"},
		"no scripts, all strategies": {env: as("noscripts"), status: 1, want: map[string]level{
			"strategy single": levelProblem, "strategy reentrant": levelWarning, "strategy rwhash": levelWarning, "strategy semaphore:1": levelWarning,
		}, says: "locks do not work"},
		"no channels": {env: as("nochannels"), args: []string{"--strategy", "single"}, status: 2,
			want: map[string]level{"strategy single": levelWarning}, says: "cannot subscribe"},
		"no messages": {env: as("nopublish"), args: []string{"--strategy", "single"}, status: 2,
			want: map[string]level{"strategy single": levelWarning}, says: "does not wake the waiter"},
		"no fencing": {env: as("nofence"), args: []string{"--strategy", "single", "fix:"}, status: 1,
			want: map[string]level{"strategy single": levelProblem}, says: "not fencing tokens"},
		"no settings": {env: as("nosettings"), args: []string{"--strategy", "single"}, status: 2,
			want: map[string]level{"config": levelUnknown, "persistence": levelUnknown}, says: "config|get"},
		"no info": {env: as("noinfo"), args: []string{"--strategy", "rwhash"}, status: 1,
			want: map[string]level{"info": levelUnknown, "clock": levelUnknown, "strategy rwhash": levelProblem}, says: "the server's version"},
		"a pattern of keys": {env: as("nothingelse"), args: []string{"lock:"}},
		"its rule":          {env: at("redisson:secret@" + good.Addr()), args: []string{"--strategy", "redisson", "lock:"}},
		"not the pattern": {env: as("nothingelse"), args: []string{"--strategy", "single"}, status: 1,
			want: map[string]level{"strategy single": levelProblem}, says: "keys"},
	}, func(t *testing.T, test test) {
		found, status := runCheck(t, test.env, test.args...)
		bad, says := map[string]level{}, test.says == ""
		for name, f := range found {
			if f.Level != levelOK {
				bad[name] = f.Level
				says = says || strings.Contains(f.Text, test.says)
			}
			if f.Text == "" || strings.Contains(f.Text+f.Advice, "sesame") {
				t.Errorf("%+v", f)
			}
		}
		if status != test.status || !maps.Equal(bad, test.want) || !says {
			t.Errorf("status %d, found %+v; want %d, %v, and %q", status, found, test.status, test.want, test.says)
		}
	})
	t.Cleanup(func() {
		for _, s := range []*redistest.Server{evicts, plain} {
			empty(t, s)
		}
		// A user with permission to acquire but not to release leaves a lock for its TTL.
		keys, _ := good.MustCommand(t, "KEYS", "*").([]any)
		for _, key := range keys {
			if ms, _ := good.MustCommand(t, "PTTL", key).(int64); ms < 0 || ms > throwawayTTL.Milliseconds() {
				t.Errorf("the key %v is left for %d ms", key, ms)
			}
		}
	})
}

// Each client tries the strategies, and leaves no key.
func TestCheckClients(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	for _, client := range clientNames() {
		found, status := runCheck(t, append(at(s.Addr()), "HOLDFAST_CLIENT="+client))
		for _, strategy := range []string{"single", "reentrant", "rwhash", "semaphore:1"} {
			if f := found["strategy "+strategy]; f.Level != levelOK || status != 2 {
				t.Errorf("%s: status %d: %+v", client, status, f)
			}
		}
		found, _ = runCheck(t, append(at(s.Addr()), "HOLDFAST_CLIENT="+client), "--strategy", "redisson")
		check.Equal(t, client+": level of redisson", found["strategy redisson"].Level, levelOK)
		empty(t, s)
	}
}

// The topology is compared with the URL, and all masters are checked.
func TestCheckTopology(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	c := redistest.StartCluster(t, 3, redistest.Options{})
	s := redistest.StartSentinel(t, redistest.Options{})
	out, errs, status := run(t, []string{"HOLDFAST_URL=redis+cluster://" + c.Addrs()[0]}, "check", "--strategy", "single")
	if status != 2 || strings.Count(out, "  eviction: ") != 3 || !strings.Contains(out, "the Cluster serves all slots") &&
		!strings.Contains(out, "cluster-require-full-coverage is yes") || strings.Contains(out, "problem") {
		t.Errorf("a Cluster: status %d: %s%s", status, out, errs)
	}
	found, status := runCheck(t, at(c.Addrs()[0]), "--strategy", "single")
	if f := found["cluster"]; status != 1 || f.Level != levelProblem {
		t.Errorf("a node of a Cluster: status %d: %+v", status, found)
	}
	elsewhere := "" // prefix of names on another node
	for n := 0; elsewhere == "" || c.NodeForSlot(redistest.Slot(elsewhere)) == c.Nodes()[0]; n++ {
		elsewhere = fmt.Sprintf("{%d}", n)
	}
	for _, client := range clientNames() {
		env := append(at(c.Addrs()[0]), "HOLDFAST_CLIENT="+client)
		found, status = runCheck(t, env, "--strategy", "single", elsewhere)
		if f := found["strategy single"]; status != 1 || f.Advice != (credentials{}).clusterAdvice() || strings.Contains(f.Text, "may be left") {
			t.Errorf("a name of another node, over %s: status %d: %+v", client, status, f)
		}
		says(t, statusUnreachable, (credentials{}).clusterAdvice(), env, "who", elsewhere)
	}
	found, status = runCheck(t, []string{"HOLDFAST_URL=redis+sentinel://" + strings.Join(s.SentinelAddrs(), ",") + "/" + s.MasterName()})
	if found["sentinel"].Level != levelOK || found["replicas"].Level != levelWarning || found["strategy single"].Level != levelOK || status != 2 {
		t.Errorf("Sentinel: status %d: %+v", status, found)
	}
	for _, one := range s.Servers() {
		if role, _ := one.MustCommand(t, "ROLE").([]any); len(role) > 0 && role[0] == "slave" {
			found, status = runCheck(t, at(one.Addr()), "--strategy", "single")
			if status != 1 || found["replicas"].Level != levelProblem || found["strategy single"].Level != levelProblem {
				t.Errorf("a replica: status %d: %+v", status, found)
			}
		}
	}
}

// A quorum needs servers that share nothing, and more than half of them.
func TestCheckQuorum(t *testing.T) {
	t.Parallel()
	s, other := shared.Get(t), redistest.Start(t, redistest.Options{})
	nodes := func(addrs ...string) []string {
		return []string{"HOLDFAST_NODES=redis://" + strings.Join(addrs, ",redis://")}
	}
	_, port, _ := strings.Cut(other.Addr(), ":")
	out, errs, status := run(t, nodes(s.Addr(), other.Addr(), "localhost:"+port), "check", "--strategy", "single")
	if status != 1 || !strings.Contains(out, "are the same server") || !strings.Contains(out, "1 may be lost") {
		t.Errorf("one twice: status %d: %s%s", status, out, errs)
	}
	out, errs, status = run(t, nodes(s.Addr(), "127.0.0.1:1", "127.0.0.1:2"), "check", "--strategy", "single")
	if status != 1 || !strings.Contains(out, "1 of 3 nodes answer, and a quorum needs 2") {
		t.Errorf("one of three: status %d: %s%s", status, out, errs)
	}
}

// TestCheckRules covers facts that no server of the tests has.
func TestCheckRules(t *testing.T) {
	t.Parallel()
	with := func(set func(*facts)) *facts {
		s := &facts{info: map[string]string{}, config: map[string]string{}}
		set(s)
		return s
	}
	info := func(pairs ...string) *facts {
		return with(func(s *facts) {
			for i := 0; i < len(pairs); i += 2 {
				s.info[pairs[i]] = pairs[i+1]
			}
		})
	}
	config := func(name, value string) *facts { return with(func(s *facts) { s.config[name] = value }) }
	tests := []struct {
		name string
		got  finding
		want level // "" means no finding
	}{
		{"Redis 6.0", info("redis_version", "6.0.20").version(), levelProblem},
		{"Redis 6.2", info("redis_version", "6.2.0").version(), levelOK},
		{"Redis 10", info("redis_version", "10.0.1").version(), levelOK},
		{"Valkey", info("redis_version", "7.2.4", "server_name", "valkey", "valkey_version", "8.1.0").version(), levelOK},
		{"Dragonfly", info("redis_version", "7.4.0", "dragonfly_version", "df-v1.30.0").version(), levelWarning},
		{"KeyDB", info("redis_version", "6.3.4", "mvcc_depth", "0").version(), levelWarning},
		{"no version", info().version(), levelUnknown},
		{"noeviction", info("maxmemory_policy", "noeviction", "maxmemory", "9").eviction(), levelOK},
		{"volatile-lru", info("maxmemory_policy", "volatile-lru", "maxmemory", "9").eviction(), levelProblem},
		{"volatile-lru without a limit", info("maxmemory_policy", "volatile-lru", "maxmemory", "0").eviction(), levelWarning},
		{"no policy", info().eviction(), levelUnknown},
		{"memory", info("maxmemory_policy", "noeviction", "maxmemory", "100", "used_memory", "50").memory(), levelOK},
		{"full memory", info("maxmemory_policy", "noeviction", "maxmemory", "100", "used_memory", "95").memory(), levelWarning},
		{"no limit", info("maxmemory_policy", "noeviction", "maxmemory", "0", "used_memory", "95").memory(), ""},
		{"no persistence known", info().persistence(false), levelUnknown},
		{"appendonly no", info("aof_enabled", "0").persistence(true), levelWarning},
		{"appendfsync unknown", info("aof_enabled", "1").persistence(true), levelUnknown},
		{"failed append", info("aof_enabled", "1", "aof_last_write_status", "err").saving(), levelProblem},
		{"failed snapshot", info("rdb_last_bgsave_status", "err").saving(), levelWarning},
		{"saved", info("rdb_last_bgsave_status", "ok").saving(), ""},
		{"replica", info("role", "slave").replication(false), levelProblem},
		{"replicas", info("role", "master", "connected_slaves", "2").replication(false), levelWarning},
		{"replicas of a node", info("role", "master", "connected_slaves", "2").replication(true), levelWarning},
		{"alone", info("role", "master", "connected_slaves", "0").replication(false), levelOK},
		{"no Cluster", info("cluster_enabled", "0").topology(oneServer), ""},
		{"no Cluster, but its URL", info("cluster_enabled", "0").topology(cluster), levelProblem},
		{"Cluster by the wrong URL", info("cluster_enabled", "1").topology(oneServer), levelProblem},
		{"Cluster that failed", info("cluster_enabled", "1").topology(cluster), levelProblem},
		{"few clients", info("maxclients", "100", "connected_clients", "5").clients(), ""},
		{"many clients", info("maxclients", "100", "connected_clients", "95").clients(), levelWarning},
		{"no timeout", config("timeout", "0").idle(), ""},
		{"short timeout", config("timeout", "5").idle(), levelWarning},
		{"pubsub", config("client-output-buffer-limit", "normal 0 0 0 slave 1 1 1 pubsub 33554432 8388608 60").pubsub(), ""},
		{"little pubsub", config("client-output-buffer-limit", "normal 0 0 0 pubsub 33554432 1024 60").pubsub(), levelWarning},
		{"fast", with(func(s *facts) { s.roundTrip = time.Millisecond }).latency(), levelOK},
		{"slow", with(func(s *facts) { s.roundTrip = time.Second }).latency(), levelWarning},
		{"not measured", info().latency(), levelUnknown},
		{"clocks", with(func(s *facts) { s.roundTrip, s.ahead = 1, -time.Second }).clock(), levelOK},
		{"clocks apart", with(func(s *facts) { s.roundTrip, s.ahead = 1, -time.Hour }).clock(), levelWarning},
		{"no clock", info().clock(), levelUnknown},
		{"open to all", login(target{addrs: []string{"10.0.0.1:6379"}}), levelWarning},
		{"open to this machine", login(target{addrs: []string{"127.0.0.1:1", "localhost:1", "[::1]:1"}}), ""},
		{"password", login(target{addrs: []string{"redis:6379"}, password: "p"}), ""},
		{"socket", login(target{network: "unix", addrs: []string{"/s"}}), ""},
		{"Sentinels", sentinelFinding(map[string]string{"flags": "master", "num-other-sentinels": "2", "num-slaves": "1"}), levelOK},
		{"two Sentinels", sentinelFinding(map[string]string{"flags": "master", "num-other-sentinels": "1", "num-slaves": "1"}), levelWarning},
		{"no replica", sentinelFinding(map[string]string{"flags": "master", "num-other-sentinels": "2", "num-slaves": "0"}), levelWarning},
		{"master is down", sentinelFinding(map[string]string{"flags": "master,s_down"}), levelProblem},
		{"four nodes", quorumFindings(make([]credentials, 4), make([]facts, 4))[0], levelWarning},
		{"two nodes", quorumFindings(make([]credentials, 2), make([]facts, 2))[0], levelWarning},
		{"five nodes", quorumFindings(make([]credentials, 5), make([]facts, 3))[0], levelOK},
		{"too few of five", quorumFindings(make([]credentials, 5), make([]facts, 2))[0], levelProblem},
		{"a Cluster as a node", quorumFindings([]credentials{{}, {}, {target: target{kind: cluster}}}, make([]facts, 3))[1], levelWarning},
	}
	for _, test := range tests {
		check.Equal(t, test.name+": level", test.got.Level, test.want)
		if test.got.Level == levelProblem && test.got.Advice == "" {
			t.Errorf("%s: a problem without advice: %+v", test.name, test.got)
		}
	}
}
