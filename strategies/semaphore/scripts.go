package semaphore

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

//go:embed lua/lock.lua
var lockLua string

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/resume.lua
var resumeLua string

//go:embed lua/undo_resume.lua
var undoResumeLua string

//go:embed lua/raise_fence.lua
var raiseFenceLua string

//go:embed lua/inspect.lua
var inspectLua string

var fencing = keylock.ReadLua + keylock.MintFenceLua

var spec = keylock.Spec{
	Name:         "semaphore",
	Queue:        true,
	MinHold:      true,
	Note:         true,
	NewValue:     newValue,
	ParseValue:   parseValue,
	ParsePermits: parsePermits,
	Acquire:      driver.NewScript(lockLua + fencing + keylock.QueueLua + acquireLua),
	Resume:       driver.NewScript(lockLua + fencing + resumeLua),
	UndoResume:   driver.NewScript(lockLua + undoResumeLua),
	Renew:        driver.NewScript(lockLua + keylock.ReadLua + keylock.RenewFenceLua + renewLua),
	Release:      driver.NewScript(lockLua + keylock.QueueLua + releaseLua),
	RaiseFence:   driver.NewScript(lockLua + fencing + raiseFenceLua),
	Inspect:      driver.NewScript(lockLua + keylock.InspectLua(inspectLua)),
}
