package security_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rueidisclient "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

// In a cluster a client asks for the slots, and sends ASKING after an ASK redirection.
func TestACLInACluster(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	c := redistest.StartCluster(t, 3, redistest.Options{})
	name := "lock:moving"
	slot := redistest.Slot(name)
	from := c.NodeForSlot(slot)
	to := c.Nodes()[0]
	if to == from {
		to = c.Nodes()[1]
	}
	target := drivertest.Target{Kind: drivertest.Cluster, Addrs: c.Addrs()}
	allow := func(rule []string) {
		for _, node := range c.Nodes() {
			node.MustCommand(t, "ACL", "LOG", "RESET")
			setUser(t, node, "single", rule)
		}
	}
	all := map[string]driver.Driver{}
	for _, client := range clients.WithFork {
		full := append(rule(t, "single"), alsoNeeded(t, client.Name, drivertest.Cluster)...)
		allow(slices.DeleteFunc(slices.Clone(full), func(w string) bool { return strings.HasPrefix(w, "+cluster|") }))
		drv, err := dial(t, client, "single", target)
		if err == nil {
			_, err = strategies["single"].acquire(t, drv, "lock:"+client.Name)
		}
		if (err == nil) != (client.Name == "redigo") { // it then follows the redirection of the wrong node
			t.Errorf("%s: acquire without +cluster: %v", client.Name, err)
		}
		tries := 0
		check.Eventually(t, client.Name+" asks for the slots", func() bool {
			if slices.ContainsFunc(c.Nodes(), func(node *redistest.Server) bool {
				return slices.ContainsFunc(denied(t, node), func(what string) bool { return begins(what, "command cluster|") })
			}) {
				return true
			}
			if tries++; drv != nil { // redigo asks behind, once a node sent it elsewhere: the first may have been the right one
				_, _ = strategies["single"].acquire(t, drv, fmt.Sprintf("lock:%s%d", client.Name, tries))
			}
			return false
		})
		allow(full)
		if drv, err = dial(t, client, "single", target); err != nil {
			t.Fatalf("%s: %v", client.Name, err)
		}
		all[client.Name] = drv
		check.Error(t, client.Name, errors.Join(strategies["single"].run(t, drv, "lock:", patience).errs...))
	}
	move, err := c.BeginMove(t.Context(), slot, to)
	check.Must(t, err)
	for _, client := range clients.WithFork {
		full := append(rule(t, "single"), alsoNeeded(t, client.Name, drivertest.Cluster)...)
		allow(full)
		lock, err := strategies["single"].acquire(t, all[client.Name], name)
		if err != nil {
			t.Errorf("%s: acquire of a name on the move: %v", client.Name, err)
			continue
		}
		check.Error(t, client.Name+": release of a name on the move", lock.Release(t.Context()))
		allow(slices.DeleteFunc(slices.Clone(full), func(w string) bool { return w == "+asking" }))
		_, err = strategies["single"].acquire(t, all[client.Name], name)
		if err == nil || driver.CodeOf(err) != "NOPERM" && client.Name != "rueidis" && client.Name != "valkey" { // they go in circles until ctx ends
			t.Errorf("%s: acquire without +asking: %v; want NOPERM", client.Name, err)
		}
		check.Equal(t, client.Name+" asked", slices.Contains(denied(t, to), "command asking"), true)
		_ = all[client.Name].Close() // one in circles would run once the next client may ask
	}
	check.OK(t, move.Abort(t.Context()))
}

// With Sentinels some clients ask a server for its role.
func TestACLBehindSentinels(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	s := redistest.StartSentinel(t, redistest.Options{})
	master, err := s.Master(t.Context())
	check.Must(t, err)
	target := drivertest.Target{Kind: drivertest.Sentinel, Addrs: s.SentinelAddrs(), MasterName: s.MasterName()}
	for _, client := range clients.WithFork {
		full := append(rule(t, "single"), alsoNeeded(t, client.Name, drivertest.Sentinel)...)
		setUser(t, master, "single", full)
		drv, err := dial(t, client, "single", target)
		if err != nil {
			t.Errorf("%s: %v", client.Name, err)
			continue
		}
		check.Error(t, client.Name, errors.Join(strategies["single"].run(t, drv, "lock:", patience).errs...))
		if !slices.Contains(full, "+role") {
			continue
		}
		setUser(t, master, "single", slices.DeleteFunc(slices.Clone(full), func(w string) bool { return w == "+role" }))
		if drv, err = dial(t, client, "single", target); err == nil {
			_, err = strategies["single"].acquire(t, drv, "lock:again")
		}
		check.Equal(t, client.Name+": acquired without +role", err == nil, false)
	}
}

// Without its cache rueidis needs no more than the rule.
func TestACLOfRueidisWithoutCache(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	setUser(t, server, "single", rule(t, "single"))
	client, err := rueidisclient.NewClient(rueidisclient.ClientOption{
		InitAddress: []string{server.Addr()}, Username: "single", Password: "secret", DisableCache: true,
	})
	check.Must(t, err)
	defer client.Close()
	drv := locker.Must(rueidis.New(client))
	defer drv.Close()
	check.OK(t, errors.Join(strategies["single"].run(t, drv, "lock:", patience).errs...))
}
