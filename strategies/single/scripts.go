package single

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/fencing"
)

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/resume.lua
var resumeLua string

//go:embed lua/undo_resume.lua
var undoResumeLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/raise_fence.lua
var raiseFenceLua string

//go:embed lua/inspect.lua
var inspectLua string

var (
	acquireScript    = driver.NewScript(fencing.Lua + acquireLua)
	resumeScript     = driver.NewScript(fencing.Lua + resumeLua)
	undoResumeScript = driver.NewScript(undoResumeLua)
	renewScript      = driver.NewScript(renewLua)
	releaseScript    = driver.NewScript(releaseLua)
	raiseFenceScript = driver.NewScript(fencing.Lua + raiseFenceLua)
	inspectScript    = driver.NewScript(inspectLua)
)

// The first value of the replies of acquire, resume and raise_fence.
const (
	replyNo      = 0
	replyYes     = 1
	replyAlready = 2 // an earlier send of the same command did it
)
