// Package hashholds is the Lua of strategies with their holds as fields of one hash. Each hold is a
// field, named by its token, with an expiry of its own by the server's clock.
//
// A strategy puts [Lua] before its scripts and, behind it, its own open(key), which reads the lock.
package hashholds

import _ "embed"

// Lua finds, writes and removes holds.
//
//go:embed holds.lua
var Lua string

// RenewLua is the script to extend a hold. It goes behind Lua and open.
//
//go:embed renew.lua
var RenewLua string
