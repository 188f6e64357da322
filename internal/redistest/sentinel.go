package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	masterName = "mymaster"
	replicas   = 2
	sentinels  = 3
	quorum     = 2
)

// Sentinel is a master with two replicas, watched by three Sentinels. Until
// KillMaster, Sentinels take a master for down after ten minutes without an answer: a pause of the
// machine causes no failover.
type Sentinel struct {
	servers   []*Server
	sentinels []*Server
}

// StartSentinel starts a Sentinel setup for a test. -short skips the test.
func StartSentinel(tb TB, opts Options) *Sentinel {
	tb.Helper()
	needMany(tb)
	return start(tb, func(ctx context.Context) (*Sentinel, error) { return LaunchSentinel(ctx, opts) })
}

// LaunchSentinel starts a Sentinel setup. The caller must Close it. When it returns, the replicas
// are in sync and a failover is possible.
func LaunchSentinel(ctx context.Context, opts Options) (_ *Sentinel, err error) {
	s := &Sentinel{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	master, err := Launch(ctx, opts)
	if err != nil {
		return nil, err
	}
	s.servers = []*Server{master}
	copies, err := launchMany(replicas, func() (*Server, error) { return LaunchReplica(ctx, master, master.Addr()) })
	s.servers = append(s.servers, copies...)
	if err != nil {
		return nil, err
	}
	for _, r := range copies { // each may become the next master
		if _, err := r.Do(ctx, "CONFIG", "SET", quickSync, 0); err != nil {
			return nil, err
		}
	}
	// Sentinels look for replicas only each 10 s, so they come last.
	s.sentinels, err = launchMany(sentinels, func() (*Server, error) {
		return launch(ctx, Options{TLS: opts.TLS}, func(w *Server) ([]string, error) { return w.sentinelArgs(master) })
	})
	if err != nil {
		return nil, err
	}
	for _, w := range s.sentinels {
		if err := w.watches(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// sentinelArgs writes the Sentinel's configuration, later also the file of its state, and returns
// its command line.
func (s *Server) sentinelArgs(master *Server) ([]string, error) {
	var conf strings.Builder
	fmt.Fprintf(&conf, "sentinel monitor %s 127.0.0.1 %d %d\n", masterName, master.port, quorum)
	fmt.Fprintf(&conf, "sentinel down-after-milliseconds %s 600000\n", masterName)
	fmt.Fprintf(&conf, "sentinel failover-timeout %s 5000\n", masterName)
	if password := master.Password(); password != "" {
		fmt.Fprintf(&conf, "sentinel auth-pass %s %q\n", masterName, password)
	}
	path := filepath.Join(s.dir, "sentinel.conf")
	if err := os.WriteFile(path, []byte(conf.String()), 0o600); err != nil {
		return nil, err
	}
	args := []string{path, "--sentinel", "--bind", "127.0.0.1", "--dir", s.dir}
	tls, err := tlsArgs(s.opts.TLS, s)
	return append(args, tls...), err
}

// watches waits until the Sentinel knows everyone and could start a failover.
func (s *Server) watches(ctx context.Context) error {
	return poll(ctx, "Sentinel "+s.Addr()+" knows everyone", func(ctx context.Context) error {
		m, err := s.Do(ctx, "SENTINEL", "MASTER", masterName)
		if err != nil {
			return err
		}
		known := fields(m)
		if known["flags"] != "master" || known["num-slaves"] != strconv.Itoa(replicas) ||
			known["num-other-sentinels"] != strconv.Itoa(sentinels-1) {
			return fmt.Errorf("it sees %v", known)
		}
		list, err := s.Do(ctx, "SENTINEL", "REPLICAS", masterName)
		if err != nil {
			return err
		}
		all, _ := list.([]any)
		for _, r := range all {
			if f := fields(r); f["flags"] != "slave" || f["master-link-status"] != "ok" {
				return fmt.Errorf("it sees replica %v", f)
			}
		}
		return nil
	})
}

// fields makes a map of a flat list of names and values.
func fields(reply any) map[string]string {
	list, _ := reply.([]any)
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
	}
	return m
}

// MasterName returns the master's name in requests to Sentinels.
func (s *Sentinel) MasterName() string { return masterName }

// SentinelAddrs returns the addresses of the Sentinels.
func (s *Sentinel) SentinelAddrs() []string {
	addrs := make([]string, len(s.sentinels))
	for i, w := range s.sentinels {
		addrs[i] = w.Addr()
	}
	return addrs
}

// Sentinels returns the Sentinels. They have no password.
func (s *Sentinel) Sentinels() []*Server { return append([]*Server(nil), s.sentinels...) }

// Servers returns the Redis servers, the first master first.
func (s *Sentinel) Servers() []*Server { return append([]*Server(nil), s.servers...) }

// Master returns the master as seen by the first Sentinel to answer.
func (s *Sentinel) Master(ctx context.Context) (*Server, error) {
	var errs []error
	for _, w := range s.sentinels {
		m, err := s.masterSeenBy(ctx, w)
		if err == nil {
			return m, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func (s *Sentinel) masterSeenBy(ctx context.Context, w *Server) (*Server, error) {
	reply, err := w.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
	if err != nil {
		return nil, err
	}
	addr, _ := reply.([]any) // host, port
	for _, m := range s.servers {
		if len(addr) == 2 && addr[1] == strconv.Itoa(m.port) {
			return m, nil
		}
	}
	return nil, fmt.Errorf("redistest: Sentinel %s sees an unknown master %v", w.Addr(), reply)
}

// KillMaster kills the master with SIGKILL and returns it; WaitMaster waits for
// its successor. From then on Sentinels take a master for down after two seconds.
func (s *Sentinel) KillMaster(ctx context.Context) (*Server, error) {
	m, err := s.Master(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.Kill(); err != nil {
		return nil, err
	}
	for _, w := range s.sentinels {
		if !w.Running() {
			continue
		}
		if _, err := w.Do(ctx, "SENTINEL", "SET", masterName, "down-after-milliseconds", 2000); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Failover makes the Sentinels replace the master by a replica while it runs,
// and returns the new master when WaitMaster does. The old one becomes a replica
// a moment later.
func (s *Sentinel) Failover(ctx context.Context) (*Server, error) {
	old, err := s.Master(ctx)
	if err != nil {
		return nil, err
	}
	err = poll(ctx, "a Sentinel starts a failover", func(ctx context.Context) error {
		_, err := s.sentinels[0].Do(ctx, "SENTINEL", "FAILOVER", masterName)
		return err // NOGOODSLAVE, INPROG: soon after another failover
	})
	if err != nil {
		return nil, err
	}
	return s.WaitSuccessor(ctx, old)
}

// WaitSuccessor waits until all running Sentinels name the same master, other than
// old, and its ROLE is master.
func (s *Sentinel) WaitSuccessor(ctx context.Context, old *Server) (*Server, error) {
	var master *Server
	err := poll(ctx, "there is a new master", func(ctx context.Context) error {
		master = nil
		for _, w := range s.sentinels {
			if !w.Running() {
				continue
			}
			m, err := s.masterSeenBy(ctx, w)
			if err != nil {
				return err
			}
			if m == old || master != nil && m != master {
				return fmt.Errorf("Sentinel %s sees %s", w.Addr(), m.Addr())
			}
			master = m
		}
		if master == nil {
			return errors.New("no Sentinel runs")
		}
		role, err := master.Do(ctx, "ROLE")
		if err != nil {
			return err
		}
		if r, _ := role.([]any); len(r) == 0 || r[0] != "master" {
			return fmt.Errorf("%s has role %v", master.Addr(), role)
		}
		return nil
	})
	return master, err
}

func (s *Sentinel) all() []*Server { return append(s.Sentinels(), s.servers...) }

// Close kills everything and removes the folders.
func (s *Sentinel) Close() error { return closeAll(s.all()) }

// Log returns the logs of all Sentinels and servers.
func (s *Sentinel) Log() string { return logAll(s.all()) }
