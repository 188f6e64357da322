// Package workload is the random work of clients under faults. A [Source] draws turns, each from an
// acquire to a release, and a [Client] makes them through the recorder of package history. Command
// torture runs clients in processes on real servers, package simulate in fake time.
package workload
