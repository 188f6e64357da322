package install

import (
	"context"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/interop/peer"
)

var java = &Runtime{
	programs: []string{"java", "javac", "mvn"},
	files:    []string{"pom.xml", "*.java"},
	install: func(ctx context.Context, folder, dir string) error {
		err := run(ctx, dir, "mvn", "--quiet", "--batch-mode", "--file", filepath.Join(folder, "pom.xml"),
			"org.apache.maven.plugins:maven-dependency-plugin:"+dependencyPlugin+":copy-dependencies",
			"-DoutputDirectory="+filepath.Join(dir, "lib"))
		if err != nil {
			return err
		}
		sources, err := filepath.Glob(filepath.Join(folder, "*.java"))
		if err != nil {
			return err
		}
		return run(ctx, dir, append([]string{
			"javac", "-cp", filepath.Join(dir, "lib", "*"), "-d", filepath.Join(dir, "classes"),
		}, sources...)...)
	},
	command: func(_, dir string) peer.Command {
		path := filepath.Join(dir, "classes") + string(os.PathListSeparator) + filepath.Join(dir, "lib", "*")
		// Without the optimizing compiler a short run is faster.
		return peer.Command{Args: []string{
			"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m", "-cp", path, "Peer",
		}}
	},
}

const dependencyPlugin = "3.8.1"
