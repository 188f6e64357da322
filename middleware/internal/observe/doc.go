// Package observe is what tracing, metrics and logging have in common: the words for outcomes, what may be told of an error,
// the form in which a holder's trace context travels, and the watching of one acquisition.
package observe
