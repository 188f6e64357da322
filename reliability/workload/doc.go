// Package workload is the random work of clients under faults. A [Source] draws turns, each from an
// acquire to the end of the hold, and a [Client] runs them through the recorder of package history.
// Command torture runs clients in processes on real servers, package simulate in fake time.
package workload
