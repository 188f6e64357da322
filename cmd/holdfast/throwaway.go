package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// throwawayTTL ends a lock whose removal failed.
const throwawayTTL = 20 * time.Second

// throwaway returns a name that nobody else uses.
func throwaway(begin string) string { return begin + lease.NewToken() }

var removeScript = driver.NewScript(`return redis.call('DEL', KEYS[1])`)

// removeKeys removes what a lock that nobody holds any more has left: the counter of its fencing
// tokens, which would live for long.
func removeKeys(c connection, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	keys := []string{key}
	if fence, ok := driver.Sibling(key, driver.FenceSuffix); ok {
		keys = append(keys, fence)
	}
	if waiters, ok := driver.WaitersKey(key); ok {
		keys = append(keys, waiters)
	}
	var unreachable error
	for _, s := range c {
		for _, k := range keys {
			// A key that the user may not remove is none that the user could write, nor is one of another
			// node of a Cluster.
			if _, err := s.drv.Eval(ctx, removeScript, []string{k}, nil); driver.Transient(err) && driver.CodeOf(err) != "MOVED" {
				unreachable = fmt.Errorf("the key %s may be left: %w", strconv.Quote(k), err)
			}
		}
	}
	return unreachable
}
