package redistest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// servers are independent masters, for start.
type servers []*Server

func (s servers) Close() error { return closeAll(s) }
func (s servers) Log() string  { return logAll(s) }

// StartN starts n independent masters for a test. -short skips the test if they are more than two.
func StartN(tb TB, n int, opts Options) []*Server {
	tb.Helper()
	if n > 2 {
		needMany(tb)
	}
	return start(tb, func(ctx context.Context) (servers, error) { return LaunchN(ctx, n, opts) })
}

// LaunchN starts n independent masters. The caller must Close each.
func LaunchN(ctx context.Context, n int, opts Options) ([]*Server, error) {
	all, err := launchMany(n, func() (*Server, error) { return Launch(ctx, opts) })
	if err != nil {
		return nil, errors.Join(err, closeAll(all))
	}
	return all, nil
}

// launchMany starts n servers at once. Those started are returned with the error too.
func launchMany(n int, launch func() (*Server, error)) ([]*Server, error) {
	all := make([]*Server, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { all[i], errs[i] = launch() })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		started := make([]*Server, 0, n)
		for _, s := range all {
			if s != nil {
				started = append(started, s)
			}
		}
		return started, err
	}
	return all, nil
}

func closeAll(all []*Server) error {
	var errs []error
	for _, s := range all {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

func logAll(all []*Server) string {
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "--- %s\n%s", s.Addr(), s.Log())
	}
	return b.String()
}
