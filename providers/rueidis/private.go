package rueidis

import (
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/redis/rueidis"
)

// This file has every access to unexported parts of the client, as read in rueidis v1.0.79. If a
// part is missing, the client is treated as a wrapped one; the comment of each function states the
// effect. private_test.go names the part if another version has changed it.

// closedFlag returns the field stop of client: Close of singleClient, clusterClient and
// sentinelClient sets it to 1. rueidis has no method for it, and returns ErrClosing also when a
// cluster or Sentinel client leaves a node.
//
// It returns nil for a client with replicas or redirects (standalone). Without it the outcome of
// the first command after Close is unknown. Later ones count as not sent, except in a cluster, and
// as refused for good only by a client of one server.
func closedFlag(client rueidis.Client) *uint32 {
	f := field(client, "stop")
	if f.Kind() != reflect.Uint32 || !f.CanAddr() {
		return nil
	}
	return (*uint32)(unsafe.Pointer(f.UnsafeAddr())) //nolint:gosec // the client itself uses it by atomic
}

// isClosed reports whether flag, of closedFlag, is set.
func isClosed(flag *uint32) bool { return flag != nil && atomic.LoadUint32(flag) != 0 }

// hasLifetime reports whether client was made with ClientOption.ConnLifetime: hasLftm of
// singleClient, clusterClient and sentinelClient, and opt of standalone. When a connection expires,
// such a client resends the commands in flight, retryable or not (client.go: errConnExpired).
//
// Without these fields New accepts such a client.
func hasLifetime(client rueidis.Client) bool {
	if f := field(client, "hasLftm"); f.Kind() == reflect.Bool {
		return f.Bool()
	}
	f := field(client, "opt")
	if !f.IsValid() || f.Type() != reflect.TypeFor[*rueidis.ClientOption]() || f.IsNil() {
		return false
	}
	lifetime := f.Elem().FieldByName("ConnLifetime")
	return lifetime.CanInt() && lifetime.Int() > 0
}

// checksContext reports whether client is of a type of rueidis itself: those call Err of a context
// right before they send (pipe.go: pipe.Do, pipe.DoMulti). With others a command counts as sent as
// soon as the client has it: its outcome is unknown if ctx ends while the client connects.
//
// If a reply comes without a call of Err, the driver relies on it no longer. In that flight,
// commands of callers that had left were wrongly reported as not sent.
func checksContext(client rueidis.Client) bool {
	return isOwn(reflect.Indirect(reflect.ValueOf(client)))
}

// connections returns a function that reports whether all shared connections to a client's server
// stand: conn of singleClient, or mConn of sentinelClient, is a mux, and each of its muxwires has a
// wire other than init. While a client connects, it does not look at ctx.
//
// Without these fields the function reports false, and each command takes another goroutine. So do
// those of a cluster, and of a client with replicas or redirects (standalone).
func connections(client rueidis.Client) (stand func() bool) {
	if master := field(client, "mConn"); master.CanAddr() && master.Type() == reflect.TypeFor[atomic.Value]() {
		at := (*atomic.Value)(unsafe.Pointer(master.UnsafeAddr())) //nolint:gosec // it is only read
		var latest atomic.Pointer[mux]
		return func() bool {
			conn := at.Load()
			m := latest.Load()
			if m == nil || m.conn != conn {
				m = muxOf(conn)
				latest.Store(m)
			}
			return m.stands()
		}
	}
	if conn := field(client, "conn"); conn.Kind() == reflect.Interface && conn.CanAddr() {
		return muxOf(content(conn)).stands
	}
	return func() bool { return false }
}

// mux is what is known of a mux of rueidis: its shared connections.
type mux struct {
	conn  any
	wires []*atomic.Value // none: unknown
	init  any             // in place of a connection that does not stand
}

// muxOf returns the mux of a conn of rueidis.
func muxOf(conn any) *mux {
	m := &mux{conn: conn}
	v := reflect.Indirect(reflect.ValueOf(conn))
	if v.Kind() != reflect.Struct || !isOwn(v) || !v.CanAddr() {
		return m
	}
	init, wires := v.FieldByName("init"), v.FieldByName("muxwires")
	if init.Kind() != reflect.Interface || wires.Kind() != reflect.Slice || wires.Type().Elem().Kind() != reflect.Struct {
		return m
	}
	m.init = content(init)
	for i := range wires.Len() {
		wire := wires.Index(i).FieldByName("wire")
		if !wire.IsValid() || wire.Type() != reflect.TypeFor[atomic.Value]() {
			return &mux{conn: conn}
		}
		m.wires = append(m.wires, (*atomic.Value)(unsafe.Pointer(wire.UnsafeAddr()))) //nolint:gosec // the same
	}
	return m
}

// content returns the content of an unexported field of interface type.
func content(f reflect.Value) any {
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Interface() //nolint:gosec // it is only read
}

// stands reports whether all shared connections stand.
func (m *mux) stands() bool {
	for _, wire := range m.wires {
		if wire.Load() == m.init {
			return false
		}
	}
	return len(m.wires) > 0
}

// field returns a field of a client of rueidis' own types, and otherwise an invalid Value.
func field(client rueidis.Client, name string) reflect.Value {
	v := reflect.Indirect(reflect.ValueOf(client))
	if v.Kind() != reflect.Struct || !isOwn(v) {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}

// isOwn reports whether the type of v is rueidis' own.
func isOwn(v reflect.Value) bool {
	return v.Type().PkgPath() == reflect.TypeFor[rueidis.ClientOption]().PkgPath()
}
