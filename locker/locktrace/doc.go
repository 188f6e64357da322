// Package locktrace reports the events of locks to callbacks, in the manner of net/http/httptrace.
// Put a [Trace] into the context of an acquire with [With]. It gets the events of that acquire, and
// of its Lock. The logging, metrics and tracing middleware are made with it.
package locktrace
