package single

import (
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// withKeyspace returns s with waiters that hear the keyspace events of the lock's key, on the channel
// prefix + key.
func withKeyspace(s keylock.Spec, prefix string) (keylock.Spec, error) {
	number, begins := strings.CutPrefix(prefix, "__keyspace@")
	number, ends := strings.CutSuffix(number, "__:")
	n, err := strconv.ParseUint(number, 10, 31)
	if !begins || !ends || err != nil || strconv.FormatUint(n, 10) != number {
		return s, argument.Invalid("single.Config.Keyspace", prefix,
			"__keyspace@N__: with the number of the database, or none")
	}
	s.Listen = listenTo(prefix)
	return s, nil
}
