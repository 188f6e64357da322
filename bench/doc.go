// Package bench measures Holdfast beside the bare clients, in the same run: batches of lock cycles
// and of the bare client's own commands alternate. A drift of the machine's speed then touches
// both. It is a module of its own: users never download it.
//
// Each row prints the median time of a cycle of either, the median of their ratios batch by batch,
// and how many more allocations the lock takes. The watchdog is measured in shares of a processor
// core instead.
package bench
