// Package check has the shared helpers of tests: tables of tests, in real or fake time, checks of
// errors, values, bounds and durations, and a buffer for output.
package check

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Each runs f as a parallel subtest for each entry of a table. The test itself calls t.Parallel.
func Each[T any](t *testing.T, tests map[string]T, f func(t *testing.T, tt T)) {
	t.Helper()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, tt)
		})
	}
}

// EachInFakeTime is Each with a bubble of testing/synctest for each subtest.
func EachInFakeTime[T any](t *testing.T, tests map[string]T, f func(t *testing.T, tt T)) {
	t.Helper()
	Each(t, tests, func(t *testing.T, tt T) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) { f(t, tt) })
	})
}

// InFakeTime runs f in a bubble of testing/synctest, in parallel with other tests.
func InFakeTime(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// Advance lets d pass on the clock of a bubble, and waits until all goroutines have acted on it.
func Advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Took fails the test unless exactly want has passed since start, on the clock of a bubble.
func Took(tb testing.TB, what string, start time.Time, want time.Duration) {
	tb.Helper()
	if took := time.Since(start); took != want {
		tb.Errorf("%s took %v, want %v", what, took, want)
	}
}

// Closed reports whether c is closed.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// patience bounds a wait of seconds on a busy machine.
const patience = 2 * time.Minute

// Eventually waits until ok returns true. The test ends if it does not for long. It works in a
// bubble too.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for start := time.Now(); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Since(start) > patience {
			tb.Fatalf("still not after %v: %s", patience, what)
			return
		}
	}
}

// Error fails the test unless err matches all of want, or is nil if there are none.
func Error(tb testing.TB, what string, err error, want ...error) {
	tb.Helper()
	if len(want) == 0 && err != nil {
		tb.Errorf("%s: %v, want no error", what, err)
	}
	for _, w := range want {
		if !errors.Is(err, w) {
			tb.Errorf("%s: %v, want an error that matches %q", what, err, w)
		}
	}
}

// Is is Error without a description.
func Is(tb testing.TB, err error, want ...error) {
	tb.Helper()
	Error(tb, "error", err, want...)
}

// IsNot fails the test if err matches any of not.
func IsNot(tb testing.TB, err error, not ...error) {
	tb.Helper()
	for _, n := range not {
		if errors.Is(err, n) {
			tb.Errorf("error %v matches %q", err, n)
		}
	}
}

// Only fails the test unless err matches want, and none of not.
func Only(tb testing.TB, err, want error, not ...error) {
	tb.Helper()
	Is(tb, err, want)
	IsNot(tb, err, not...)
}

// OK fails the test unless err is nil.
func OK(tb testing.TB, err error) {
	tb.Helper()
	Error(tb, "error", err)
}

// ErrOf returns the error of a call, without its other result.
func ErrOf[T any](_ T, err error) error { return err }

// AtMost fails the test if got is greater than most.
func AtMost[T cmp.Ordered](tb testing.TB, what string, got, most T) {
	tb.Helper()
	if got > most {
		tb.Errorf("%s: %v, want %v at most", what, got, most)
	}
}

// AtLeast fails the test if got is less than least.
func AtLeast[T cmp.Ordered](tb testing.TB, what string, got, least T) {
	tb.Helper()
	if got < least {
		tb.Errorf("%s: %v, want %v at least", what, got, least)
	}
}

// Within fails the test unless got is from least to most.
func Within[T cmp.Ordered](tb testing.TB, what string, got, least, most T) {
	tb.Helper()
	AtLeast(tb, what, got, least)
	AtMost(tb, what, got, most)
}

// Must ends the test if err is not nil.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("error %v, want none", err)
	}
}

// Equal fails the test unless got is want.
func Equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		unequal(tb, what, got, want)
	}
}

// EqualSlices fails the test unless got has the elements of want, in their order.
func EqualSlices[T comparable](tb testing.TB, what string, got, want []T) {
	tb.Helper()
	if !slices.Equal(got, want) {
		unequal(tb, what, got, want)
	}
}

func unequal(tb testing.TB, what string, got, want any) {
	tb.Helper()
	format := "%s: %+v, want %+v"
	switch got.(type) {
	case string, []string:
		format = "%s: %q, want %q"
	}
	tb.Errorf(format, what, got, want)
}

// Contains fails the test unless got has want in it.
func Contains(tb testing.TB, what, got, want string) {
	tb.Helper()
	if !strings.Contains(got, want) {
		tb.Errorf("%s: %q, want %q in it", what, got, want)
	}
}

// Panics fails the test unless f panics with want, or with any value if want is nil.
func Panics(tb testing.TB, want any, f func()) {
	tb.Helper()
	defer func() {
		tb.Helper()
		if got := recover(); got == nil || want != nil && got != want {
			tb.Errorf("panic with %v, want %v", got, want)
		}
	}()
	f()
}

// Buffer is a buffer that may be read while others write to it.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
