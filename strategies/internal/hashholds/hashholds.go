// Package hashholds is the Lua of strategies with their holds as fields of one hash. Each hold is a
// field, named by its token, with an expiry of its own by the server's clock.
//
// A strategy puts [Lua] before its scripts and, behind it, its own open(key), which reads the lock.
package hashholds

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/strategies/keylock"
)

//go:embed holds.lua
var holdsLua string

// Lua finds, writes and removes holds.
var Lua = keylock.ReadLua + holdsLua

//go:embed renew.lua
var renewLua string

// RenewLua is the script to extend a hold. It goes behind Lua and open.
var RenewLua = keylock.RenewFenceLua + renewLua
