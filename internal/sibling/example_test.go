package sibling_test

import (
	"fmt"

	"github.com/holdfast-go/holdfast/internal/sibling"
)

func ExampleOf() {
	for _, key := range []string{"job", "user:{7}:job", "a}b"} {
		fmt.Println(sibling.Of(key, sibling.FenceSuffix))
	}
	// Output:
	// {job}:fence true
	// user:{7}:job:fence true
	//  false
}
