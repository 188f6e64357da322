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

var spec = keylock.Spec{
	Name:         "semaphore",
	Queue:        true,
	MinHold:      true,
	Note:         true,
	NewValue:     newValue,
	ParseValue:   parseValue,
	ParsePermits: parsePermits,
	Acquire:      driver.NewScript(keylock.Lua(lockLua + acquireLua)),
	Resume:       driver.NewScript(keylock.Lua(lockLua + resumeLua)),
	UndoResume:   driver.NewScript(keylock.Lua(lockLua + undoResumeLua)),
	Renew:        driver.NewScript(keylock.Lua(lockLua + renewLua)),
	Release:      driver.NewScript(keylock.Lua(lockLua + releaseLua)),
	RaiseFence:   driver.NewScript(keylock.Lua(lockLua + raiseFenceLua)),
	Inspect:      driver.NewScript(keylock.Lua(lockLua + inspectLua)),
}
