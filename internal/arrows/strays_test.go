package arrows_test

import (
	"slices"
	"testing"
)

// The test above is worth what strays finds: here it looks at imports that are known to be wrong.
func TestStraysAreFound(t *testing.T) {
	t.Parallel()
	ours := func(name string) string { return module + "/" + name }
	g := graph{
		"fmt":                           {Standard: true},
		"example.com/client":            {Imports: []string{"fmt", "example.com/hash"}},
		"example.com/hash":              {Imports: []string{"fmt"}},
		"example.com/other":             {Imports: []string{"example.com/hash"}},
		ours("locker"):                  {Imports: []string{"fmt", ours("locker/driver")}},
		ours("locker/driver"):           {Imports: []string{"fmt"}},
		ours("providers/good"):          {Imports: []string{"example.com/client", ours("locker/driver")}},
		ours("providers/two"):           {Imports: []string{"example.com/client", "example.com/other"}},
		ours("strategies/internal/x"):   {Imports: []string{ours("strategies/internal/x/y")}},
		ours("strategies/internal/x/y"): {Imports: []string{ours("providers/good")}},
	}
	tests := []struct {
		name                   string
		program, with, outside string
		want                   []string
	}{
		{"all allowed", "locker providers/good", "locker/...", "example.com/client", nil},
		{"one of ours", "locker", "", "", []string{ours("locker") + " -> " + ours("locker/driver")}},
		{
			"a prefix of the name is not the package", "locker", "locker/d locker/drive/...", "",
			[]string{ours("locker") + " -> " + ours("locker/driver")},
		},
		{"a second client", "providers/two", "", "example.com/client", []string{ours("providers/two") + " -> example.com/other"}},
		{
			"a client behind others", "strategies/internal/x", "strategies/internal/... providers/good locker/driver", "",
			[]string{ours("strategies/internal/x") + " -> " + ours("strategies/internal/x/y") + " -> " + ours("providers/good") +
				" -> example.com/client"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := (arrow{test.program, test.with, test.outside, ""}).strays(t, g); !slices.Equal(got, test.want) {
				t.Errorf("strays are\n%q, not\n%q", got, test.want)
			}
		})
	}
}
