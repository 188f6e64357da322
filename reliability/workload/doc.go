// Package workload is what clients do with locks while something goes wrong: it draws random turns,
// each from an acquire to a release, and makes them through the recorder of package history. Command
// torture runs it in processes on real servers, package simulate in fake time.
package workload
