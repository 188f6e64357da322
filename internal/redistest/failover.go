package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Replica returns the replica of one of the masters.
func (c *Cluster) Replica(ctx context.Context, master *Server) (*Server, error) {
	for _, s := range c.all() {
		if s == master || !s.Running() {
			continue
		}
		role, err := s.role(ctx)
		if err != nil {
			return nil, err
		}
		if role[0] == "slave" && len(role) > 2 && fmt.Sprint(role[2]) == strconv.Itoa(master.announced) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("redistest: %s has no replica", master.Addr())
}

// Failover makes a replica take over from its running master. It returns when WaitMasters does.
func (c *Cluster) Failover(ctx context.Context, replica *Server) error {
	err := poll(ctx, replica.Addr()+" has taken over", func(ctx context.Context) error {
		if replica.leads(ctx) == nil {
			return nil
		}
		if _, err := replica.Do(ctx, "CLUSTER", "FAILOVER"); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 6*time.Second) // after 5 s without votes a replica gives up
		defer cancel()
		return c.WaitMaster(ctx, replica)
	})
	if err != nil {
		return err
	}
	return c.WaitMasters(ctx)
}

// WaitMaster waits until a former replica is a master.
func (*Cluster) WaitMaster(ctx context.Context, s *Server) error {
	return poll(ctx, s.Addr()+" is a master", s.leads)
}

// WaitMasters waits until all nodes name the same masters. From then on they are the Nodes.
func (c *Cluster) WaitMasters(ctx context.Context) error {
	err := poll(ctx, "all nodes agree on the masters", func(ctx context.Context) error {
		masters, seen, err := c.look(ctx)
		if err != nil {
			return err
		}
		all := c.all()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.nodes = masters
		c.replicas = slices.DeleteFunc(all, func(s *Server) bool { return slices.Contains(masters, s) })
		for slot, id := range seen {
			for s, its := range c.ids {
				if its == id {
					c.owner[slot] = s
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.WaitReady(ctx)
}

// Masters asks all nodes for the masters, and returns them in the order of their first slots. It is
// an error if a node does not answer, if they do not agree, or if a node without slots is not in
// sync with its master.
func (c *Cluster) Masters(ctx context.Context) ([]*Server, error) {
	masters, _, err := c.look(ctx)
	return masters, err
}

// look is Masters, with the slots' owners.
func (c *Cluster) look(ctx context.Context) (masters []*Server, seen [Slots]string, err error) {
	all := c.all()
	for i, s := range all {
		nodes, err := s.Do(ctx, "CLUSTER", "NODES")
		if err != nil {
			return nil, seen, err
		}
		sees := owners(nodes)
		if i > 0 && sees != seen {
			return nil, seen, fmt.Errorf("redistest: %s and %s see other owners of slots", all[0].Addr(), s.Addr())
		}
		seen = sees
	}
	for slot, id := range seen {
		if slot > 0 && id == seen[slot-1] {
			continue
		}
		at := slices.IndexFunc(all, func(s *Server) bool { return c.id(s) == id })
		if at < 0 {
			return nil, seen, fmt.Errorf("redistest: slot %d has no owner", slot)
		}
		if !slices.Contains(masters, all[at]) {
			masters = append(masters, all[at])
		}
	}
	for _, s := range all {
		role, err := s.role(ctx)
		if err != nil {
			return nil, seen, err
		}
		leads := slices.Contains(masters, s)
		if leads != (role[0] == "master") || !leads && (len(role) < 4 || role[3] != "connected") {
			return nil, seen, fmt.Errorf("redistest: %s has the role %v", s.Addr(), role)
		}
	}
	return masters, seen, nil
}

// role returns the reply to ROLE.
func (s *Server) role(ctx context.Context) ([]any, error) {
	reply, err := s.Do(ctx, "ROLE")
	if err != nil {
		return nil, err
	}
	if role, _ := reply.([]any); len(role) > 0 {
		return role, nil
	}
	return nil, fmt.Errorf("redistest: %s has the role %v", s.Addr(), reply)
}

// leads returns nil if s is a master.
func (s *Server) leads(ctx context.Context) error {
	role, err := s.role(ctx)
	if err == nil && role[0] != "master" {
		err = errors.New(s.Addr() + " is a " + strings.Replace(fmt.Sprint(role[0]), "slave", "replica", 1))
	}
	return err
}
