package driver

import "context"

// Await returns what call returns, or ctx's error soon after ctx ends, while call is finished behind. It is for clients
// whose calls ignore their context. A ctx that cannot end costs nothing; any other costs a goroutine.
func Await[T any](ctx context.Context, call func() (T, error)) (T, error) {
	done := ctx.Done()
	if done == nil {
		return call()
	}
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, NotSent(err)
	}
	type answer struct {
		v   T
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		v, err := call()
		answered <- answer{v, err}
	}()
	select {
	case a := <-answered:
		return a.v, a.err
	case <-done:
	}
	select {
	case a := <-answered: // both were ready: an answer is worth more
		return a.v, a.err
	default:
		return zero, ctx.Err()
	}
}
