package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

const (
	// unreplicated is how long before a failover what was acknowledged may not have reached a replica.
	unreplicated = time.Second
	// downAfter is for how long Sentinels must miss a master. On a busy machine they replace one that lives all the same.
	downAfter = 2 * time.Second
	// settleLimit is how long a failover may take, with Sentinels' ten seconds until a master that comes back is made a replica.
	settleLimit = time.Minute
)

// patient makes the Sentinels wait for downAfter.
func patient(s *redistest.Sentinel) error {
	for _, w := range s.Sentinels() {
		if _, err := w.Command("SENTINEL", "SET", s.MasterName(), "down-after-milliseconds", downAfter.Milliseconds()); err != nil {
			return err
		}
	}
	return nil
}

// soleMaster returns the master, if all servers are there and the others are its replicas.
func (s *stage) soleMaster(ctx context.Context) (*redistest.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
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
	return master, nil
}

// settle waits for the end of all failovers.
func (s *stage) settle(ctx context.Context) (*redistest.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for {
		m, err := s.soleMaster(ctx)
		if err == nil {
			return m, nil
		}
		if !pause(ctx, 20*time.Millisecond) {
			return nil, err
		}
	}
}

// watchMaster records, until ctx ends, when state may be lost: from before the last look at which master still was the only
// one until one is again. It sees the failovers that nobody ordered, too.
func (r *round) watchMaster(ctx context.Context, master *redistest.Server) {
	last := r.rec.Now()
	from := int64(-1) // of the window that is open
	lose := func() { r.rec.Lose("", from-int64(unreplicated), r.rec.Now()) }
	for ctx.Err() == nil {
		at := r.rec.Now()
		m, err := r.stage.soleMaster(ctx)
		if from < 0 && (err != nil || m != master) {
			from = last
		}
		if err == nil {
			if from >= 0 {
				lose()
				from, master = -1, m
			}
			last = at
		}
		pause(ctx, 20*time.Millisecond)
	}
	if from >= 0 {
		lose()
	}
}
