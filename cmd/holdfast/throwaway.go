package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// throwawayTTL ends a lock whose removal failed.
const throwawayTTL = 20 * time.Second

// throwaway returns a name unused by others.
func throwaway(begin string) string { return begin + lease.NewToken() }

// The ACL rule of redisson, in SECURITY.md, has PEXPIRE and no DEL.
var removeScript = driver.NewScript(`return redis.call('PEXPIRE', KEYS[1], 0)`)

// removeKeys removes the keys of a free lock. Its fence counter would live for long: counter names
// it; empty: the usual one.
func removeKeys(c connection, key, counter string) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	keys := []string{key}
	if fence, ok := sibling.Of(key, sibling.FenceSuffix); counter != "" || ok {
		keys = append(keys, cmp.Or(counter, fence))
	}
	if waiters, ok := sibling.Waiters(key); ok {
		keys = append(keys, waiters)
	}
	var unreachable error
	for _, s := range c {
		for _, k := range keys {
			// A key forbidden to the user, or of another node of a Cluster, has not been written.
			if _, err := s.drv.Eval(ctx, removeScript, []string{k}, nil); driver.Transient(err) && driver.CodeOf(err) != "MOVED" {
				unreachable = fmt.Errorf("the key %s may be left: %w", strconv.Quote(k), err)
			}
		}
	}
	return unreachable
}
