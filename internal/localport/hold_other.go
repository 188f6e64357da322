//go:build !unix

package localport

// Hold does nothing here: the port may be taken by others.
func Hold(int) (*Held, error) { return &Held{drop: func() error { return nil }}, nil }
