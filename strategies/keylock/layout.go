package keylock

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Layout is how a strategy keeps its holds at the server. Every script gets the lock's key, and acquire, resume, renew and
// raise_fence that of the fence counter behind it where the hold is fenced. A hold is named by its value.
type Layout struct {
	// Strategy is the package's name, for traces and errors.
	Strategy string
	// SetNX: an acquire that asks for no fence begins with SET key value NX PX ttl.
	SetNX bool
	// SendHolder: acquire and resume get owner and note behind their other arguments. There is always an owner then.
	SendHolder bool
	// Shared: there is a shared mode. Acquire and resume get behind their other arguments the mode; for how many ms the
	// caller has waited, -1 where it does not; who waits (lease.Waiting), empty before the first refusal; and for how many
	// ms more it does at most, empty: without end.
	Shared bool
	// Extra is what acquire, resume, release and convert get last.
	Extra []string

	// Acquire gets value, TTL in ms, the counter's TTL in ms (0 where there is none). Its reply: {1, fence} taken by this call,
	// {2, fence} ours since an earlier call, {0, ...} held by another, {-1, text} a fence counter that is none, {-2, text} a
	// key that is not ours.
	Acquire *driver.Script
	// Resume gets what Acquire gets, and the value to replace by the new one. Its reply is Acquire's; {0}: that hold is gone.
	Resume *driver.Script
	// UndoResume gets the new value and the one that it replaced. Its reply: 1 undone, 0 nothing to undo.
	UndoResume *driver.Script
	// Renew gets what Acquire gets. Its reply: 1 extended, 0 not held. It never shortens, and writes whenever it answers 1.
	Renew *driver.Script
	// Release gets value and the channel to publish on; "": none. Its reply: 1 released, 0 not held.
	Release *driver.Script
	// Convert, where it is not nil, writes whenever it answers {1, ...}. It gets value, the mode to change to, the conversion's number among those of the hold, the
	// channel to publish on, and the counter's TTL in ms. Its reply: {1, fence} done, {2, fence} done by an earlier call, {0}
	// not held, {3, ...} refused because of another, whom Holder reads, {4} a later conversion was there before, {-1, text}, {-2, text}.
	// Where it is there, the replies of acquire and resume have the number of the last conversion behind the fence.
	Convert *driver.Script
	// RaiseFence gets value, token and the counter's TTL in ms. Its reply: {1, fence}, {0} not held, {-1, text}, {-2, text}.
	RaiseFence *driver.Script

	// CheckResume, where it is not nil, refuses a resume that cannot be.
	CheckResume func(locker.Request) error
	// Value makes the value of a new hold.
	Value func(owner, note string) string
	// Parse, where it is not nil, finds owner and note in a value.
	Parse func(value string) (owner, note string)
	// Holder reads who holds from a refusal.
	Holder func(driver.Reply) (Holder, error)
}

// Holder is who holds a lock. Owner and Note are empty where it is not one of ours.
type Holder struct {
	Owner, Note string
	Left        int64 // ms until the lease ends; negative: it has no end, or is unknown
	Again       int64 // ms until the next attempt, at the latest; negative: unknown
}

// The first value of a script's reply.
const (
	replyForeign = -2
	replyCounter = -1
	replyNo      = 0
	replyYes     = 1
	replyAlready = 2 // an earlier send of the same command did it
	replyRefused = 3 // a conversion: because of another holder
	replyLate    = 4 // a conversion: a later one was there before
)

// answer reads the reply of a script that answers 1 or 0.
func answer(reply driver.Reply) (yes bool, err error) {
	status, err := reply.Int(0)
	if err == nil && status != replyYes && status != replyNo {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		return false, Malformed(err)
	}
	return status == replyYes, nil
}

// Malformed is the error of a reply that no script of ours gives.
func Malformed(err error) error {
	return driver.Permanent(fmt.Errorf("unexpected reply of a script: %w", err))
}

// Millis clamps what a foreign key may live for.
func Millis(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
