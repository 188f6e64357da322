package contender

import (
	"context"
	"time"

	"github.com/bsm/redislock"
)

// redislockEach returns the constructor of redislock with so long a wait between its attempts. Its
// README shows 100 ms; by itself it does not wait.
func redislockEach(pause time.Duration) func(Options) (*Locks, error) {
	return func(opts Options) (*Locks, error) {
		c := openGoredis(opts.Addrs[0])
		client := redislock.New(c)
		open, end := context.WithCancel(context.Background())
		options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(pause)}
		return &Locks{
			Acquire: func(name string) (Lock, error) {
				lock, err := client.Obtain(open, name, opts.TTL, options)
				if err != nil {
					return nil, err
				}
				return lock, nil
			},
			Close: func() { end(); c.Close() },
		}, nil
	}
}
