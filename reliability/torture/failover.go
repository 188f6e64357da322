package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

const (
	// unreplicated is how long before a failover an acknowledged write may not have reached a
	// replica.
	unreplicated = time.Second
	// downAfter is the node timeout of clusters: how long a master must be silent before it is replaced.
	// Sentinels wait as long, after KillMaster. On a busy machine a healthy master may be replaced too.
	downAfter = 2 * time.Second
	// settleLimit bounds a failover, with Sentinels' ten seconds until a returning master is made a
	// replica.
	settleLimit = time.Minute
)

// soleMaster returns the master of Sentinels, if all servers are there and the others are its
// replicas.
func (s *deployment) soleMaster(ctx context.Context) ([]*redistest.Server, error) {
	var master *redistest.Server
	for _, srv := range s.servers {
		reply, err := srv.Do(ctx, "ROLE")
		if err != nil {
			return nil, err
		}
		role, _ := reply.([]any)
		switch {
		case len(role) > 0 && role[0] == "master" && master == nil:
			master = srv
		case len(role) < 4 || role[0] != "slave" || role[3] != "connected":
			return nil, fmt.Errorf("%s has the role %v", srv.Addr(), reply)
		}
	}
	if master == nil {
		return nil, fmt.Errorf("there is no master")
	}
	if seen, err := s.sentinel.Master(ctx); err != nil || seen != master {
		return nil, fmt.Errorf("the Sentinels see another master: %w", err)
	}
	return []*redistest.Server{master}, nil
}

// look is masters with a limit: a frozen server does not block it.
func (s *deployment) look(ctx context.Context) ([]*redistest.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return s.masters(ctx)
}

// settle waits for the end of all failovers.
func (s *deployment) settle(ctx context.Context) ([]*redistest.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for {
		all, err := s.look(ctx)
		if err == nil && s.cluster != nil {
			err = s.cluster.WaitMasters(ctx)
			all = s.cluster.Nodes()
		}
		if err == nil {
			return all, nil
		}
		if !pause(ctx, 20*time.Millisecond) {
			return nil, err
		}
	}
}

// watchMasters records, until ctx ends, when state may be lost: from before the last successful
// look at the masters until the next one. So it sees unplanned failovers too.
func (r *round) watchMasters(ctx context.Context, masters []*redistest.Server) {
	last := r.rec.Now()
	from := int64(-1) // of the open window
	lose := func() { r.rec.Lose("", from-int64(unreplicated), r.rec.Now()) }
	for ctx.Err() == nil {
		at := r.rec.Now()
		now, err := r.deployment.look(ctx)
		if from < 0 && (err != nil || !slices.Equal(now, masters)) {
			from = last
		}
		if err == nil {
			if from >= 0 {
				lose()
				from, masters = -1, now
			}
			last = at
		}
		pause(ctx, 20*time.Millisecond)
	}
	if from >= 0 {
		lose()
	}
}
