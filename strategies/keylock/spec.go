package keylock

import (
	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Spec describes a strategy: its name and its scripts.
//
// The value of a hold names it: a string with 128 random bits, fresh for each acquire. It is
// compared whole. Without NewValue the value is a token of 22 characters, and Acquire and Resume
// get the owner and the note as arguments.
//
// All scripts get the key of the lock as KEYS[1]. Acquire, Resume, Renew, Convert and RaiseFence
// get the key of the fence counter as KEYS[2] if the hold is fenced. With Queue, Acquire, Release
// and Convert may get the key of the queue of waiters, as the last key. Times are in milliseconds.
// A script checks everything before its first write: an error leaves nothing half written. It
// returns the error of a key of another type (WRONGTYPE) as redis.pcall gives it.
//
// A reply is its status, a number, or a list with the status first. Release has a meaning of its
// own for 2 and 3; otherwise:
//
//	 1  done by this call
//	 2  done by an earlier send of the same call
//	 0  not done: another holds the lock, or the hold is gone
//	 3  a conversion was refused because of another holder
//	 4  a conversion came behind a later one, and changed nothing
//	 5  and a number: the semaphore has that other limit; nothing written
//	-1  and a text: the fence counter holds something else, which the text names; nothing written
//	-2  and a text: the key holds something else, which the text names; nothing written
//
// A fence in a reply is a decimal string; it is '0' if the hold is not fenced. A holder is owner,
// note, left; or, with ParseValue, value, left. left is the time until the lock is free if nobody
// renews it; it is negative if unknown.
type Spec struct {
	// Name is the strategy's name in traces and errors.
	Name string

	// NewValue makes the value of a new hold, with the owner and the note in it. It goes together
	// with ParseValue. Default: the value is a random token.
	NewValue func(owner, note string, permits int) string
	// ParseValue returns the owner and the note of a value; both are empty unless the value is
	// exactly of NewValue's form.
	ParseValue func(value string) (owner, note string)
	// Permits is the limit of a semaphore: how many permits of a name are granted at a time.
	// NewValue then puts the permits of a hold into its value. Default: 0, a lock; a request for
	// more than one permit ends in errors.ErrUnsupported.
	Permits int
	// ParsePermits returns the permits of a value, or 0 if it is not exactly of NewValue's form.
	ParsePermits func(value string) int
	// Reentrant says that Acquire grants a held lock again to its owner. Default: it refuses every
	// request while the lock is held.
	Reentrant bool
	// SetNX says that the key is a string, the value: a plain acquire is sent as SET key value NX
	// PX ttl, and as Acquire only after its refusal. Default: always Acquire.
	SetNX bool
	// Shared: there is a shared mode, and the scripts order shared and exclusive waiters. Default:
	// exclusive only; a shared request ends in errors.ErrUnsupported.
	Shared bool
	// Queue: the scripts keep a queue of waiters, by the functions of [Lua], and a release wakes
	// the first one. With NewValue a value begins with lease.NewToken(). Default: Release publishes
	// on one channel for all.
	Queue bool
	// MinHold: Release supports Request.MinHold, and can leave the name taken. Default: a request
	// with a MinHold ends in errors.ErrUnsupported.
	MinHold bool
	// Note: Resume can change the note of a hold, for Lock.SetNote. Default: SetNote ends in
	// errors.ErrUnsupported.
	Note bool
	// ExtraArgs are put behind the arguments of Acquire and Resume.
	ExtraArgs []string
	// Siblings names the fence counter and the channel of releases of a lock's key, for the protocol
	// of another library. Both are in the key's cluster slot. ok is false if a lock cannot have the
	// key: its acquire is then ErrInvalid. A value of ours begins with lease.NewToken(), followed by
	// ":", "|", " " or nothing; other values are those of the library (lease.Hint.Foreign). Not with
	// Queue. Default: Holdfast's own names.
	Siblings func(key string) (counter, channel string, ok bool)

	// Listen returns the channel of a lock's key for its waiters: driver.NewChannel with the name
	// channel, and a driver that may hear more than drv does. Default: with drv itself.
	Listen func(drv driver.Driver, key, channel string) driver.Channel

	// Acquire makes the hold if nobody holds the lock.
	//
	//	ARGV   value, TTL, TTL of the fence counter ('0' if there is none);
	//	       owner, note, unless there is a ParseValue;
	//	       with Shared: the mode ('exclusive' or 'shared');
	//	       with Shared or Queue: how long the caller has waited, '-1' if it does not wait; how
	//	       long it will wait at most, '' without end;
	//	       with Queue: its place in the queue: a random ID, '' if it does not wait, 'all' if it
	//	       has no place of its own, but with Shared 'writers' for an exclusive request at a node
	//	       of a quorum and 'newcomers' for one that was not refused before; its delivery (see
	//	       Lua); the channel to wake waiters on;
	//	       with Config.Fair: how long the next one of its process has waited, '-1' if there is none,
	//	       else ''
	//	reply  {1, fence}, {2, fence}, {0, holder}, {0, holder, again} or {0, holder, again, 1},
	//	       {-1, text}, {-2, text}; with Permits {5, limit}
	//
	// again is the time by which to try again, if it differs from left. The 1 behind it says that
	// the holder has released, and its MinHold lasts for left. With Convert, the number of the
	// hold's last conversion follows the fence; it is 0 for a new hold.
	Acquire *driver.Script
	// Renew extends the lease. It never shortens one, and writes whenever it replies 1, so that a
	// WAIT behind it speaks for all earlier writes. It extends the fence counter too.
	//
	//	ARGV   value, TTL, TTL of the fence counter
	//	reply  1, 0
	Renew *driver.Script
	// Release removes the hold, and publishes an empty message if that frees the lock.
	//
	//	ARGV   value, the channel to publish on ('': do not publish);
	//	       with Queue: the place of the caller's process, which needs no wake-up ('': none); '1'
	//	       if the order is strict, else ''; who is to try next: 'keep' if that place alone, 'leave'
	//	       if nobody waits there any more, else '' for the first waiter. The three are left
	//	       out if all are '' and nothing follows;
	//	       with Siblings: the driver.Delivery to the driver's own subscriptions to the channel;
	//	       with MinHold, if the name is to stay taken: for how long. The hold
	//	       is replaced by one that nobody can renew or release, and waiters that do not poll are
	//	       woken, so that they learn when it ends. It never lasts longer than the lease of the
	//	       hold
	//	reply  1 released; 2 the lock is free, and nobody waits or the caller's process is first;
	//	       3 the lock is free, and another waiter was woken; 0 not held
	Release *driver.Script

	// Resume replaces the value of a hold by a new one. It never shortens the lease, and mints a
	// new fencing token. Default: locks cannot be resumed.
	//
	//	ARGV   those of Acquire, with the value to replace behind the first three;
	//	       with Note, for Lock.SetNote: value, TTL, '0', the value to replace and, unless there
	//	       is a ParseValue, owner, note and ''; the '' says that an empty note replaces one too
	//	reply  {1, fence}, {2, fence}, {0}: that hold is gone, {-1, text}, {-2, text}
	Resume *driver.Script
	// UndoResume restores the value before a Resume. The lease stays as it is. It goes with Resume.
	//
	//	ARGV   the new value, the value that it replaced
	//	reply  1, 0
	UndoResume *driver.Script
	// Convert changes the mode of a hold, and writes whenever it replies 1. The lease stays as it
	// is. It refuses a conversion behind one with a higher number. Default: no conversion.
	//
	//	ARGV   value, the mode to change to, the conversion's number, the channel to publish on, TTL
	//	       of the fence counter
	//	reply  {1, fence}, {2, fence}, {0}, {3, holder} or {3, holder, again, 1}, {4}, {-1, text},
	//	       {-2, text}
	Convert *driver.Script
	// RaiseFence raises the fencing token of a hold to at least a given one, for a quorum. A
	// strategy with fencing tokens has it. Default: no fencing tokens; a fenced request ends in
	// errors.ErrUnsupported.
	//
	//	ARGV   value, the token in decimal, TTL of the fence counter
	//	reply  {1, fence as it is now}, {0}, {-1, text}, {-2, text}
	RaiseFence *driver.Script
	// Inspect reads the holders. It gets the fence counter as KEYS[2], if the server lets it. With
	// Queue it gets the queue of waiters as KEYS[3], if it may, and the last item of its reply is the
	// number of waiters, unless that is {-2, text}: add_waiters of [Lua] adds it. Default: Locker.Inspect
	// ends in errors.ErrUnsupported.
	//
	//	ARGV   none, or 'holds'; with Shared, TTL of the fence counter behind it
	//	reply  {1, holder, number of live holds, 1 if they are shared else 0, fence}, {0},
	//	       {-2, text}; with Permits the limit and the permits that are held follow, and no fence;
	//	       the number is 0 if a holder has released, and its MinHold lasts for left
	//
	// fence is '0' if the holder has none; it may be left out. With 'holds' the values of all live
	// holds follow, and of what a release with MinHold left: Release ends each of them by its
	// value. Without these values locker.Break ends in errors.ErrUnsupported. With Shared the script
	// then mints a token if fence is not '0': later readers must not have that of the holds.
	Inspect *driver.Script
}

// check returns an error if a field is missing.
func (s *Spec) check() error {
	switch {
	case s.Name == "":
		return argument.Invalid("keylock.Spec.Name", `""`, "the name of the strategy")
	case s.Acquire == nil || s.Renew == nil || s.Release == nil:
		return argument.Invalid("keylock.Spec of "+s.Name, "no Acquire, Renew or Release", "all three")
	case (s.Resume == nil) != (s.UndoResume == nil):
		return argument.Invalid("keylock.Spec of "+s.Name, "one of Resume and UndoResume", "both or neither")
	case s.Note && s.Resume == nil:
		return argument.Invalid("keylock.Spec of "+s.Name, "Note without Resume", "both, or no Note")
	case (s.NewValue == nil) != (s.ParseValue == nil):
		return argument.Invalid("keylock.Spec of "+s.Name, "one of NewValue and ParseValue", "both or neither")
	case s.Siblings != nil && s.Queue:
		return argument.Invalid("keylock.Spec of "+s.Name, "Siblings with Queue", "one of them, or neither")
	case s.Permits != 0 && (s.ParseValue == nil || s.ParsePermits == nil):
		return argument.Invalid("keylock.Spec of "+s.Name, "Permits without ParseValue or ParsePermits", "all three")
	}
	return nil
}

func (s *Spec) newValue(owner, note string, permits int) string {
	if s.NewValue == nil {
		return lease.NewToken()
	}
	return s.NewValue(owner, note, permits)
}
