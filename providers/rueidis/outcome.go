package rueidis

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// outcome returns nil if a command was answered with anything but an error, otherwise an error as
// package driver means it. closing is what d.closing was before the command was sent.
func (d *rueidisDriver) outcome(ctx context.Context, res rueidis.RedisResult, closing bool) error {
	if err := res.NonRedisError(); err != nil {
		return d.unanswered(ctx, err, closing)
	}
	if d.closing.Load() {
		d.closing.Store(false)
	}
	refusal, ok := rueidis.IsRedisErr(res.Error())
	if !ok { // no error, or a nil reply
		return nil
	}
	text, _ := res.ToString() // refusal has lost an "ERR "
	return adapter.NewServerError(text, refusal)
}

func (d *rueidisDriver) unanswered(ctx context.Context, err error, closing bool) error {
	notSent := adapter.DialFailed(err) || errors.Is(err, rueidis.ErrNoSlot)
	if refusal, ok := rueidis.IsRedisErr(err); ok { // no answer to the command, but to the client's introducing itself
		notSent = true
		err = adapter.NewServerError(refusal.Error(), refusal)
	}
	if errors.Is(err, rueidis.ErrClosing) {
		// What is in flight when the client is closed, or leaves a server that is no longer the
		// master, gets it too. So the first of them proves nothing; a command that is sent after it
		// goes nowhere. In a cluster the next one may be of another node that the client leaves.
		d.closing.Store(true)
		notSent = closing && (!d.cluster || closed(d.client))
	}
	if adapter.Ended(ctx) == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = &givenUpError{err}
	}
	switch {
	case notSent && errors.Is(err, rueidis.ErrClosing) && closed(d.client):
		return driver.Permanent(driver.NotSent(err))
	case notSent:
		return driver.NotSent(err)
	}
	return err
}

// closed reports whether client's Close was called.
func closed(client rueidis.Client) bool {
	stop, _ := stopOf(client)
	return stop != nil && atomic.LoadUint32(stop) != 0
}

// stopOf returns what client's Close sets to a value other than 0, or nil. It is an unexported field
// of the client, the only difference from a client that left its server; a test checks that the
// field still exists. A client with replicas or redirects has a client of its primary, in an atomic
// pointer: then lasting is false.
func stopOf(client rueidis.Client) (stop *uint32, lasting bool) {
	v := reflect.Indirect(reflect.ValueOf(client))
	if v.Kind() != reflect.Struct || !v.CanAddr() {
		return nil, false
	}
	lasting = true
	if primary := v.FieldByName("primary"); primary.IsValid() && primary.CanAddr() {
		lasting = false
		load, ok := reflect.PointerTo(primary.Type()).MethodByName("Load")
		p := primary.FieldByName("v")
		if !ok || load.Type.NumOut() != 1 || load.Type.Out(0).Kind() != reflect.Pointer || !p.IsValid() ||
			p.Kind() != reflect.UnsafePointer {
			return nil, false
		}
		v = reflect.NewAt(load.Type.Out(0).Elem(), atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(p.UnsafeAddr())))).Elem() //nolint:gosec // as below
	}
	field := v.FieldByName("stop")
	if !field.IsValid() || field.Kind() != reflect.Uint32 {
		return nil, false
	}
	return (*uint32)(unsafe.Pointer(field.UnsafeAddr())), lasting //nolint:gosec // the client itself uses it by atomic
}

// givenUpError is the error of a call whose connection another call or the client gave up. It does
// not match the error of their context, which a caller would take for its own.
type givenUpError struct{ err error }

func (e *givenUpError) Error() string { return "rueidis: connection given up: " + e.err.Error() }
