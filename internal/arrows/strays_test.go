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
		name string
		arrow
		want []string
	}{
		{
			name: "all allowed",
			arrow: arrow{program: []string{"locker", "providers/good"}, with: []string{"locker/..."},
				outside: []string{"example.com/client"}},
		},
		{
			name:  "one of ours",
			arrow: arrow{program: []string{"locker"}},
			want:  []string{ours("locker") + " -> " + ours("locker/driver")},
		},
		{
			name:  "a prefix of the name is not the package",
			arrow: arrow{program: []string{"locker"}, with: []string{"locker/d", "locker/drive/..."}},
			want:  []string{ours("locker") + " -> " + ours("locker/driver")},
		},
		{
			name:  "a second client",
			arrow: arrow{program: []string{"providers/two"}, outside: []string{"example.com/client"}},
			want:  []string{ours("providers/two") + " -> example.com/other"},
		},
		{
			name: "a client behind others",
			arrow: arrow{program: []string{"strategies/internal/x"}, with: []string{"strategies/internal/...",
				"providers/good", "locker/driver"}},
			want: []string{
				ours("strategies/internal/x") + " -> " + ours("strategies/internal/x/y") + " -> " + ours("providers/good") +
					" -> example.com/client",
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.strays(t, g); !slices.Equal(got, test.want) {
				t.Errorf("strays are\n%q, not\n%q", got, test.want)
			}
		})
	}
}
