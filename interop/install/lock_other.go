//go:build !unix

package install

// lockFile is missing here: two processes may both install, and one of them fails.
func lockFile(string) (unlock func(), err error) { return func() {}, nil }
