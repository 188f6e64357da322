// Package text shortens what users named for error texts.
package text

import "fmt"

// Quote quotes a name, shortened to 64 bytes.
func Quote(name string) string {
	const most = 64
	if len(name) > most {
		return fmt.Sprintf("%q...", name[:most])
	}
	return fmt.Sprintf("%q", name)
}
