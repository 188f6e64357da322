package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

//go:embed lua/strategy.lua
var strategySource string

//go:embed lua/detect.lua
var detectSource string

var detectScript = driver.NewScript(strategySource + detectSource)

// strategyNames are the strategies of locks in one key.
var strategyNames = []string{"single", "reentrant", "rwhash", "redisson", "semaphore"}

// Replies of strategy_of beside the name of a strategy.
const (
	anyString    = "string" // not of our form: another library's lock, or no lock; a space and the library may follow
	otherPrefix  = '!'      // before the key's content, not a lock
	deniedPrefix = '-'      // before the server's error
)

// detector shows and ends the holds of any strategy at one server. It finds the strategy of a name
// by the content of its key. It acquires nothing.
type detector struct {
	drv        driver.Driver
	prefix     string
	strategies map[string]locker.Locker

	found atomic.Pointer[string] // strategy of the last lock asked for
}

var _ locker.Inspector = (*detector)(nil)

// breaker is a strategy for locker.Break.
type breaker interface {
	FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error)
}

func newDetector(drv driver.Driver, prefix string) (*detector, error) {
	d := &detector{drv: drv, prefix: prefix, strategies: map[string]locker.Locker{}}
	for _, name := range strategyNames {
		l, err := newStrategy(drv, name, 1, prefix)
		if err != nil {
			return nil, err
		}
		d.strategies[name] = l
	}
	return d, nil
}

// locker returns the Locker of a reply of strategy_of.
func (d *detector) locker(strategy string) locker.Locker {
	if isString(strategy) || strategy == "" { // a free key
		strategy = "single"
	}
	return d.strategies[strategy]
}

// isString reports whether a reply of strategy_of says: a string not of our form.
func isString(strategy string) bool { return strings.HasPrefix(strategy, anyString) }

// Acquire implements locker.Locker.
func (*detector) Acquire(context.Context, locker.Request) (*locker.Lock, error) {
	return nil, errors.ErrUnsupported
}

// Unwrap returns one of the strategies: a quorum finds the server's address by it.
func (d *detector) Unwrap() locker.Locker { return d.strategies["single"] }

// Inspect implements locker.Inspector. It shows a string even if it is no lock of ours: it may be
// another library's.
func (d *detector) Inspect(ctx context.Context, name string) (state locker.State, err error) {
	err = d.ask(ctx, name, func(ctx context.Context, strategy string) error {
		inspector, _ := lease.Find[locker.Inspector](d.locker(strategy))
		state, err = inspector.Inspect(ctx, name)
		return err
	})
	return state, err
}

// FindHolds implements breaker. It refuses a string that is no lock of ours.
func (d *detector) FindHolds(ctx context.Context, name string) (state locker.State, end func(context.Context) error, err error) {
	err = d.ask(ctx, name, func(ctx context.Context, strategy string) error {
		if isString(strategy) {
			return driver.Permanent(fmt.Errorf(
				"key %q holds a string that holdfast has not written: if it is a lock of another library, give --strategy single",
				d.prefix+name))
		}
		inner, _ := lease.Find[breaker](d.locker(strategy))
		state, end, err = inner.FindHolds(ctx, name)
		return err
	})
	return state, end, err
}

// ask calls do with the strategy of a name, and again if another one has taken the key meanwhile.
func (d *detector) ask(ctx context.Context, name string, do func(context.Context, string) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	d.found.Store(nil)
	for before := "none"; ; {
		strategy, errDetect := d.detect(ctx, name)
		if errDetect != nil {
			return errDetect
		}
		if strategy == before {
			return err
		}
		if err = do(ctx, strategy); !noLock(err) {
			if strategy != "" {
				d.found.Store(&strategy)
			}
			return err
		}
		before = strategy
	}
}

// detect returns the strategy of a name, "" if the key is free.
func (d *detector) detect(ctx context.Context, name string) (string, error) {
	key := d.prefix + name
	reply, err := d.drv.Eval(ctx, detectScript, []string{key}, nil)
	if err != nil {
		return "", nameServer(d.drv, err)
	}
	found, err := reply.Text(0)
	if err != nil {
		return "", err
	}
	return strategyFound(key, found)
}

// nameServer adds the server's address to the error of a command without an answer in time.
func nameServer(drv driver.Driver, err error) error {
	if addr := drv.Info().Address; addr != "" && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer from %s in %v: %w", addr, answerTimeout, err)
	}
	return err
}

// strategyFound returns the strategy in a reply of strategy_of, or its error.
func strategyFound(key, found string) (string, error) {
	switch {
	case found == "":
		return "", nil
	case found[0] == deniedPrefix:
		return "", fmt.Errorf("key %q: %w", key, &driver.ServerError{Text: found[1:]})
	case found[0] == otherPrefix:
		return "", driver.Permanent(fmt.Errorf("key %q holds %s", key, found[1:]))
	case isString(found) || slices.Contains(strategyNames, found):
		return found, nil
	}
	return "", fmt.Errorf("key %q: unexpected reply %q", key, found)
}

// noLock reports whether err means: the key holds no lock of the strategy asked, or cannot hold
// one.
func noLock(err error) bool {
	return errors.Is(err, driver.ErrPermanent) || errors.Is(err, locker.ErrInvalid) || driver.CodeOf(err) == "WRONGTYPE"
}

// inspector is a Locker that shows and ends holds.
type inspector struct {
	locker.Locker

	given     string // strategy named by the options
	detectors []*detector
}

// Unwrap returns the Locker.
func (i *inspector) Unwrap() locker.Locker { return i.Locker }

// withStrategy returns s, the state of the last lock asked for, with the strategy found there.
func (i *inspector) withStrategy(s locker.State) lockState {
	strategy := i.given
	for _, d := range i.detectors {
		if found := d.found.Load(); found != nil {
			strategy = *found
		}
	}
	return lockState{s, strategy}
}

// openInspector connects, and returns an inspector of the options' strategy, else of any.
func (o *options) openInspector() (*inspector, connection, error) {
	name, permits, err := parseStrategy(o.strategy, false)
	if err != nil {
		return nil, nil, err
	}
	c, err := o.connect()
	if err != nil {
		return nil, nil, err
	}
	var i *inspector
	if o.strategy != "" {
		i = &inspector{given: name}
		i.Locker, err = c.strategy(name, permits, o.prefix)
	} else {
		i, err = c.inspector(o.prefix)
	}
	if err != nil {
		c.close()
		return nil, nil, err
	}
	return i, c, nil
}

// inspector returns an inspector of any strategy.
func (c connection) inspector(prefix string) (*inspector, error) {
	i := &inspector{}
	var nodes []locker.Locker
	for _, s := range c {
		d, err := newDetector(s.drv, prefix)
		if err != nil {
			return nil, err
		}
		i.detectors, nodes = append(i.detectors, d), append(nodes, d)
	}
	if len(nodes) == 1 {
		i.Locker = nodes[0]
		return i, nil
	}
	var err error
	i.Locker, err = redlock.New(nodes, redlock.Config{})
	return i, err
}
