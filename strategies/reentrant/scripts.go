package reentrant

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/hashholds"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

//go:embed lua/lock.lua
var lockLua string

//go:embed lua/acquire_free.lua
var acquireFreeLua string

//go:embed lua/release_only.lua
var releaseOnlyLua string

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/resume.lua
var resumeLua string

//go:embed lua/undo_resume.lua
var undoResumeLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/raise_fence.lua
var raiseFenceLua string

//go:embed lua/inspect.lua
var inspectLua string

// form is the pattern of a hold's value.
const form = "local form = '^(%d+)$'\n"

var common = form + hashholds.Lua + lockLua

var spec = keylock.Spec{
	Name:       "reentrant",
	Reentrant:  true,
	Queue:      true,
	MinHold:    true,
	Note:       true,
	Acquire:    driver.NewScript(acquireFreeLua + keylock.Lua(common+acquireLua)),
	Resume:     driver.NewScript(keylock.Lua(common + resumeLua)),
	UndoResume: driver.NewScript(keylock.Lua(common + undoResumeLua)),
	Renew:      driver.NewScript(keylock.Lua(common + hashholds.RenewLua)),
	Release:    driver.NewScript(releaseOnlyLua + keylock.Lua(common+releaseLua)),
	RaiseFence: driver.NewScript(keylock.Lua(common + raiseFenceLua)),
	Inspect:    driver.NewScript(keylock.Lua(common + inspectLua)),
}
