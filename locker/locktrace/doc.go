// Package locktrace reports the events of locks to callbacks, in the manner of net/http/httptrace.
// Put a [Trace] into the context of an acquire with [With]. The events of that acquire, and of the
// Lock that it returns, are reported to it. The logging, metrics and tracing middleware are made
// with it.
package locktrace
