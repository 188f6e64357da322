package retry

import "github.com/holdfast-go/holdfast/locker"

// Tenures returns how many tenures l keeps.
func Tenures(l locker.Locker) int { return len(l.(*retrier).queues.tenures) }
