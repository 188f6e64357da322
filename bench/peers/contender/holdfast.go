package contender

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/providers/redigo"
	"github.com/holdfast-go/holdfast/providers/rueidis"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// config configures a chain and its strategy.
type config struct {
	strategy single.Config
	chain    holdfast.Config
}

// handOver lets a process keep a lock for its own waiters for 10 ms.
func handOver(cfg *config) { cfg.chain.HandOver = 10 * time.Millisecond }

// fair makes the order of waiters strict.
func fair(cfg *config) { cfg.strategy.Fair = true }

// holdfastOver returns the constructor of Holdfast over a client's drivers: the chain of holdfast.New over
// one server, the same around a quorum over several. change, if any, edits the Config.
func holdfastOver(
	open func(addrs []string) ([]driver.Driver, func(), error), change ...func(*config),
) func(Options) (*Locks, error) {
	return func(opts Options) (*Locks, error) {
		drivers, closeAll, err := open(opts.Addrs)
		if err != nil {
			return nil, err
		}
		var cfg config
		for _, edit := range change {
			edit(&cfg)
		}
		l, err := chain(drivers, cfg)
		if err != nil {
			closeAll()
			return nil, err
		}
		return &Locks{
			Acquire: func(name string) (Lock, error) {
				lock, err := l.Acquire(context.Background(), locker.Request{Name: name, TTL: opts.TTL})
				if err != nil {
					return nil, err
				}
				return lock, nil
			},
			Close: closeAll,
		}, nil
	}
}

func chain(drivers []driver.Driver, cfg config) (locker.Locker, error) {
	var nodes []locker.Locker
	for _, drv := range drivers {
		node, err := single.New(drv, cfg.strategy)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	if len(nodes) == 1 {
		return holdfast.Wrap(nodes[0], cfg.chain)
	}
	quorum, err := redlock.New(nodes, redlock.Config{})
	if err != nil {
		return nil, err
	}
	return holdfast.Wrap(quorum, cfg.chain)
}

func goredisDrivers(addrs []string) ([]driver.Driver, func(), error) {
	return forEach(addrs, func(addr string) (driver.Driver, func(), error) {
		c := openGoredis(addr)
		drv, err := goredis.New(c)
		if err != nil {
			c.Close()
			return nil, nil, err
		}
		return drv, func() { drv.Close(); c.Close() }, nil
	})
}

func rueidisDrivers(addrs []string) ([]driver.Driver, func(), error) {
	return forEach(addrs, func(addr string) (driver.Driver, func(), error) {
		c, err := openRueidis(addr)
		if err != nil {
			return nil, nil, err
		}
		drv, err := rueidis.New(c)
		if err != nil {
			c.Close()
			return nil, nil, err
		}
		return drv, func() { drv.Close(); c.Close() }, nil
	})
}

func redigoDrivers(addrs []string) ([]driver.Driver, func(), error) {
	return forEach(addrs, func(addr string) (driver.Driver, func(), error) {
		pool := openRedigo(addr)
		drv, err := redigo.New(pool)
		if err != nil {
			pool.Close()
			return nil, nil, err
		}
		return drv, func() { drv.Close(); pool.Close() }, nil
	})
}
