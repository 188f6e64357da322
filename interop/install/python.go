package install

import (
	"context"
	"path/filepath"

	"github.com/holdfast-go/holdfast/interop/peer"
)

var python = &Runtime{
	programs: []string{"python3"},
	files:    []string{"requirements.txt"},
	install: func(ctx context.Context, folder, dir string) error {
		if err := run(ctx, dir, "python3", "-m", "venv", dir); err != nil {
			return err
		}
		return run(ctx, dir, filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "--quiet", "--no-input",
			"--disable-pip-version-check", "--requirement", filepath.Join(folder, "requirements.txt"))
	},
	command: func(folder, dir string) peer.Command {
		return peer.Command{Args: []string{filepath.Join(dir, "bin", "python"), filepath.Join(folder, "peer.py")}}
	},
}
