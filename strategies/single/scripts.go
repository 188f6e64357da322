package single

import (
	_ "embed"
	"fmt"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

//go:embed lua/reserved.lua
var reservedLua string

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/resume.lua
var resumeLua string

//go:embed lua/undo_resume.lua
var undoResumeLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/release_only.lua
var releaseOnlyLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/signal_spring.lua
var signalSpringLua string

//go:embed lua/signal_python.lua
var signalPythonLua string

//go:embed lua/raise_fence.lua
var raiseFenceLua string

//go:embed lua/inspect.lua
var inspectLua string

// common goes before every script. Its most is the length of the longest value of ours, in bytes: a
// hold's, kept by a release.
var common = fmt.Sprintf("local most = %d\n", len("~")+maxValue)

var releaseScript = releaseOnlyLua + keylock.Lua(common+reservedLua+releaseLua)

var spec = keylock.Spec{
	Name:       "single",
	Queue:      true,
	NewValue:   newValue,
	ParseValue: parseValue,
	SetNX:      true,
	MinHold:    true,
	Note:       true,
	Acquire:    driver.NewScript(keylock.Lua(common + reservedLua + acquireLua)),
	Resume:     driver.NewScript(keylock.Lua(common + resumeLua)),
	UndoResume: driver.NewScript(keylock.Lua(common + undoResumeLua)),
	Renew:      driver.NewScript(keylock.Lua(common + renewLua)),
	Release:    driver.NewScript(releaseScript),
	RaiseFence: driver.NewScript(keylock.Lua(common + raiseFenceLua)),
	Inspect:    driver.NewScript(keylock.Lua(common + reservedLua + inspectLua)),
}
