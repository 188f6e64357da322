package history

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/anishathalye/porcupine"
)

// file is a history on disk.
type file struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	Rules   Rules   `json:"rules"`
	Events  []Event `json:"events"`
}

// Save writes the history of a Result to dir, and for a violation its picture, and returns the
// paths.
func (res Result) Save(dir string) (paths []string, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(file{res.Name, res.Verdict, res.Reason, res.rules, res.events}, "", " ")
	if err != nil {
		return nil, err
	}
	base := filepath.Join(dir, strings.Map(plain, res.Name))
	if err := os.WriteFile(base+".json", text, 0o600); err != nil {
		return nil, err
	}
	paths = append(paths, base+".json")
	if res.Verdict != Violation {
		return paths, nil
	}
	res.info.AddAnnotations(res.annotations())
	if err := porcupine.VisualizePath(res.rules.model(), res.info, base+".html"); err != nil {
		return paths, err
	}
	return append(paths, base+".html"), nil
}

func plain(r rune) rune {
	if strings.ContainsRune("{}/\\: ", r) {
		return '_'
	}
	return r
}

func (res Result) annotations() []porcupine.Annotation {
	var list []porcupine.Annotation
	for _, e := range res.events {
		switch e.Kind {
		case Lose:
			list = append(list, porcupine.Annotation{
				Tag: "losses", Start: e.Call, End: e.Return,
				Description: "state may be lost", BackgroundColor: "#efaefc",
			})
		case Note:
			list = append(list, porcupine.Annotation{Tag: "notes", Start: e.Call, End: e.Return, Description: e.Error})
		}
	}
	if len(res.events) > 0 {
		last := res.events[len(res.events)-1].Return
		list = append(list, porcupine.Annotation{Tag: "check", Start: last, Description: "violation", Details: res.Reason, BackgroundColor: "#ffb3b3"})
	}
	return list
}

// Load reads a history written by [Result.Save].
func Load(path string) ([]Event, Rules, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, Rules{}, err
	}
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, Rules{}, fmt.Errorf("%s: %w", path, err)
	}
	return f.Events, f.Rules, nil
}
