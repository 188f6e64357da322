package install

import (
	"context"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/interop/peer"
)

var node = &Runtime{
	programs: []string{"node", "npm"},
	files:    []string{"package.json", "package-lock.json"},
	install: func(ctx context.Context, folder, dir string) error {
		for _, name := range []string{"package.json", "package-lock.json"} {
			b, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				return err
			}
		}
		return run(ctx, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	},
	command: func(folder, dir string) peer.Command {
		return peer.Command{
			Args: []string{"node", filepath.Join(folder, "peer.js")},
			Env:  []string{"NODE_PATH=" + filepath.Join(dir, "node_modules")},
		}
	},
}
