package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// facts are the data about one server.
type facts struct {
	addr string

	info    map[string]string // the fields of INFO
	infoErr error

	config    map[string]string // the readable settings
	configErr error             // of the first unreadable one

	cluster map[string]string // the fields of CLUSTER INFO, nil if there is no Cluster
	// sentinels are the findings about this master's Sentinels.
	sentinels []finding

	roundTrip time.Duration // the median
	ahead     time.Duration // of the server's clock before the local one
	clockErr  error
}

// settings are the settings read by check.
var settings = []string{
	"appendfsync", "min-replicas-to-write", "timeout", "client-output-buffer-limit", "cluster-require-full-coverage",
}

// gather asks the server of a target, each master of a Cluster, or the Sentinels' master. It always
// uses go-redis: none of its questions is about locks.
func (f *checkFlags) gather(ctx context.Context, cred credentials) ([]facts, error) {
	ctx, cancel := context.WithTimeout(ctx, f.connect+answerTimeout)
	defer cancel()
	begin, cancelBegin := context.WithTimeout(ctx, f.connect)
	defer cancelBegin()
	c := newGoredis(cred)
	defer c.Close() //nolint:errcheck // nothing is pending
	switch c := c.(type) {
	case *redis.ClusterClient:
		return gatherCluster(ctx, begin, c)
	case *redis.Client:
		addr := cred.addrs[0]
		var sentinels []finding
		if cred.kind == sentinel {
			var err error
			if addr, sentinels, err = askSentinels(begin, cred); err != nil {
				return nil, err
			}
		}
		s, err := ask(ctx, begin, addr, c)
		if err != nil {
			return nil, err
		}
		s.sentinels = sentinels
		return []facts{s}, nil
	default:
		return nil, fmt.Errorf("%T: %w", c, errors.ErrUnsupported)
	}
}

func gatherCluster(ctx, begin context.Context, c *redis.ClusterClient) ([]facts, error) {
	var mu sync.Mutex
	var all []facts
	if err := c.Do(begin, "TIME").Err(); err != nil && !answered(err) {
		return nil, noAnswer(strings.Join(c.Options().Addrs, ","), err)
	}
	err := c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		s, err := ask(ctx, ctx, node.Options().Addr, node)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b facts) int { return strings.Compare(a.addr, b.addr) })
	return all, nil
}

// ask asks one server. It returns an error if the server does not answer until begin ends, or
// refuses the login.
func ask(ctx, begin context.Context, addr string, c *redis.Client) (facts, error) {
	s := facts{addr: addr, config: map[string]string{}}
	if err := c.Time(begin).Err(); err != nil && !answered(err) {
		return s, noAnswer(addr, err)
	}
	s.measure(ctx, c)
	text, err := c.Info(ctx).Result()
	s.info, s.infoErr = fields(text), err
	for _, name := range settings {
		values, err := c.ConfigGet(ctx, name).Result()
		if value, has := values[name]; has {
			s.config[name] = value
		} else if err != nil {
			s.configErr = err
			break
		}
	}
	if s.info["cluster_enabled"] == "1" {
		text, _ := c.ClusterInfo(ctx).Result()
		s.cluster = fields(text)
	}
	return s, nil
}

// answered reports whether err is an error reply other than a refused login.
func answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !refusedLogin(err)
}

// noAnswer returns the error for a server that did not answer, or refused the login.
func noAnswer(addr string, err error) error {
	if refusedLogin(err) {
		return withStatus(fmt.Errorf("%s refused the login: %w", addr, err))
	}
	return withStatus(fmt.Errorf("no answer from %s: %w", addr, err))
}

// measure measures the round trip, and how far the clocks are apart: the server read its clock
// about in the middle of the shortest round trip.
func (s *facts) measure(ctx context.Context, c *redis.Client) {
	const samples = 11
	var took []time.Duration
	shortest := time.Hour
	for range samples {
		sent := time.Now()
		at, err := c.Time(ctx).Result()
		trip := time.Since(sent)
		if err != nil {
			s.clockErr = err
			if !answered(err) {
				return
			}
		}
		took = append(took, trip)
		if err == nil && trip < shortest {
			shortest, s.ahead = trip, at.Sub(sent.Add(trip/2))
		}
	}
	slices.Sort(took)
	s.roundTrip = took[len(took)/2]
}

// fields returns the fields of a text of lines such as "name:value".
func fields(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[name] = value
		}
	}
	return all
}

// number returns the number in a field, or 0.
func (s *facts) number(field string) int64 {
	n, _ := strconv.ParseInt(s.info[field], 10, 64)
	return n
}

// askSentinels asks each Sentinel for the master's address, and returns the first answer.
func askSentinels(ctx context.Context, cred credentials) (master string, found []finding, err error) {
	var state map[string]string
	for _, addr := range cred.addrs {
		c := redis.NewSentinelClient(&redis.Options{
			Addr: addr, Password: cred.sentinelPassword, TLSConfig: cred.tlsConfig,
			DialTimeout: dialTimeout, ReadTimeout: readTimeout, ContextTimeoutEnabled: true, MaxRetries: -1,
		})
		one, oneErr := c.Master(ctx, cred.master).Result()
		_ = c.Close()
		if oneErr != nil {
			err = errors.Join(err, noAnswer("the Sentinel at "+addr, oneErr))
			found = append(found, warning("sentinel", "Start it, or correct the URL.",
				"the Sentinel at %s does not know the master %q: %v", addr, cred.master, oneErr))
			continue
		}
		if state == nil {
			state, master = one, net.JoinHostPort(one["ip"], one["port"])
		}
	}
	if state == nil {
		return "", nil, withStatus(err)
	}
	return master, append(found, sentinelFinding(state)), nil
}
